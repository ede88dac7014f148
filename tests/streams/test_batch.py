"""The columnar batch and its wire form."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Event, EventBatch, key_hash
from streams.batch import SCHEMA
from streams.errors import BatchFormatError
from streams.testing import event_lists


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
