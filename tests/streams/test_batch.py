"""The columnar batch and its wire form."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Event, EventBatch, key_hash, shard_of
from streams.batch import SCHEMA
from streams.errors import BatchFormatError
from tests.builders.streams import event_lists

GOLDEN = [
    Event(id="e1", type="A", time_us=-1, key="Åse", data={"price": 7, "nested": {"is": [True, None, 1.5]}}),
    Event(id="e2", type="B", time_us=1_767_225_600_000_001, key="order-1", data={}),
    Event(id="e3", type="A", time_us=1_767_225_600_000_001, key="Åse", data={"name": "schlüssel"}),
]


@given(event_lists())
def test_rows_columns_and_wire_hold_the_same_events(events: list[Event]) -> None:
    batch = EventBatch.from_events(events)
    assert len(batch) == len(events)
    assert batch.to_events() == events
    assert EventBatch.from_bytes(batch.to_bytes()).to_events() == events


@given(event_lists())
def test_columns_say_what_the_rows_say(events: list[Event]) -> None:
    batch = EventBatch.from_events(events)
    assert batch.time_us.dtype == np.int64
    assert batch.time_us.tolist() == [event.time_us for event in events]
    assert batch.key_hashes.tolist() == [key_hash(event.key) for event in events]
    assert [batch.type_names[code] for code in batch.type_codes.tolist()] == [event.type for event in events]


@given(event_lists(), st.data())
def test_slices_are_parts_of_the_batch(events: list[Event], data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(events)))
    length = data.draw(st.none() | st.integers(0, len(events) - offset))
    part = EventBatch.from_events(events).slice(offset, length)
    expected = events[offset:] if length is None else events[offset : offset + length]
    assert part.to_events() == expected
    assert EventBatch.from_bytes(part.to_bytes()).to_events() == expected


def test_slices_cut_decoded_attributes_too() -> None:
    events = [Event(id=f"e{number}", type="A", time_us=number, key="k") for number in range(4)]
    whole = EventBatch(EventBatch.from_events(events).columns, {("price",): pa.array([10, 11, 12, 13])})
    assert whole.slice(1, 2).attributes[("price",)].to_pylist() == [11, 12]


@given(event_lists(), st.integers(1, 4))
def test_every_event_goes_to_the_shard_of_its_key_in_order(events: list[Event], shards: int) -> None:
    parts = EventBatch.from_events(events).split_by_shard(shards)
    assert all(len(part) for part in parts.values())
    assert {shard: part.to_events() for shard, part in parts.items()} == {
        shard: [event for event in events if shard_of(key_hash(event.key), shards) == shard] for shard in parts
    }
    assert sum(map(len, parts.values())) == len(events)


def test_a_batch_of_the_first_format_is_read() -> None:
    """The file was written by the first release; Arrow may write the same batch otherwise, but must read it."""
    batch = EventBatch.from_bytes((Path(__file__).parent / "golden" / "batch-v1.arrow").read_bytes())
    assert batch.to_events() == GOLDEN
    assert batch.key_hashes.tolist() == [key_hash(event.key) for event in GOLDEN]
    assert batch.columns.schema.equals(SCHEMA, check_metadata=True)


def test_an_unknown_version_is_refused_with_what_was_found() -> None:
    schema = SCHEMA.with_metadata({b"forestall.batch": b"99"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(schema.empty_table())
    with pytest.raises(BatchFormatError, match="'99' is unknown"):
        EventBatch.from_bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("body", [b"", b"not arrow", EventBatch.from_events([]).to_bytes()[:40]])
def test_damaged_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(BatchFormatError):
        EventBatch.from_bytes(body)


def test_a_batch_is_keyed_by_texts_and_integers_of_an_attribute() -> None:
    values = ["c1", 7, "", None, True, 1.5, {"x": 1}, ["c1"], "c1"]
    events = [
        Event(id=f"e{n}", type="A", time_us=n, key="k", data={"who": {"id": value}}) for n, value in enumerate(values)
    ]
    events.append(Event(id="none", type="A", time_us=0, key="k", data={"who": 3}))
    keyed = EventBatch.from_events(events).keyed_by(("who", "id"))
    assert [(event.id, event.key) for event in keyed.to_events()] == [("e0", "c1"), ("e1", "7"), ("e8", "c1")]
    assert keyed.key_hashes.tolist() == [key_hash(key) for key in ("c1", "7", "c1")]
    assert EventBatch.from_bytes(keyed.to_bytes()).to_events() == keyed.to_events()
    assert len(EventBatch.from_events(events).keyed_by(("nowhere",))) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c", "é"])), max_size=12))
def test_the_order_of_time_is_by_time_and_id(some):
    batch = EventBatch.from_events(
        [Event(id=one, type="T", time_us=time_us, key=f"k{place}") for place, (time_us, one) in enumerate(some)]
    )
    assert batch.order_by_time().tolist() == sorted(range(len(some)), key=lambda place: some[place])


def test_the_order_in_which_events_came_stays_with_them() -> None:
    batch = EventBatch.from_events([Event(id=f"e{n}", type="A", time_us=n % 2, key=f"k{n}", data={}) for n in range(9)])
    numbered = batch.numbered(5)
    parts = [EventBatch.from_bytes(part.to_bytes()) for part in numbered.split_by_shard(3).values()]
    found = EventBatch.joined([part.slice(1).take(np.arange(len(part) - 1)[::-1]) for part in parts])
    assert found.arrivals is not None
    assert found.arrivals.tolist() == [5 + int(event.id[1:]) for event in found.to_events()]
    assert EventBatch.from_bytes(batch.to_bytes()).arrivals is None
    mixed = EventBatch.joined([batch.slice(0, 1), numbered.slice(1, 1)])
    assert mixed.arrivals is not None
    assert mixed.arrivals.tolist() == [0, 6]


def test_a_batch_of_the_second_format_is_read() -> None:
    batch = EventBatch.from_bytes((Path(__file__).parent / "golden" / "batch-v2.arrow").read_bytes())
    assert batch.to_events() == GOLDEN
    assert batch.arrivals is not None
    assert batch.arrivals.tolist() == [7, 8, 9][: len(GOLDEN)]


def test_numbers_below_zero_are_refused() -> None:
    with pytest.raises(BatchFormatError, match="below 0"):
        EventBatch.from_bytes(EventBatch.from_events(GOLDEN).numbered(-1).to_bytes())
