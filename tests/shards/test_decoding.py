"""The checks of an encoded batch; a bad batch does not affect its neighbours."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shards.decoding import decode_batches
from shards.state import ShardState
from streams import BatchFormatError, EventBatch, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import bodies, event, log_of

STREAM = StreamOn(StreamDeclaration(name="orders"))
PAIR = PatternOn(
    name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u [x > a.x]) WHERE u.x > 3 RETURN a.x AS x"
)


def with_data(batch: EventBatch, *data: bytes) -> EventBatch:
    columns = batch.columns
    place = columns.schema.get_field_index("data")
    return EventBatch(columns.set_column(place, columns.schema.field(place), pa.array(data, pa.binary())))


def two_events(*data: bytes) -> EventBatch:
    return with_data(EventBatch.from_events([event(1, "A", x=1), event(2, "U", x=5)]), *data)


def test_a_batch_is_read_back() -> None:
    batch = EventBatch.from_events([event(1, "A", x=1)])
    found, empty = decode_batches([batch.to_bytes(), EventBatch.from_events([]).to_bytes()])
    assert isinstance(found, EventBatch)
    assert found.to_events() == batch.to_events()
    assert isinstance(empty, EventBatch)
    assert len(empty) == 0


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b"{]", b"x}", b'{"x": 1'])
def test_attributes_have_to_look_like_an_object(data: bytes) -> None:
    (found,) = decode_batches([two_events(b"{}", data).to_bytes()])
    assert isinstance(found, BatchFormatError)
    assert "not JSON" in found.message


def test_a_slice_is_judged_by_its_own_rows() -> None:
    rows = two_events(b"junk", b"{}").slice(1)
    (found,) = decode_batches([rows.to_bytes()])
    assert isinstance(found, EventBatch)
    assert found.columns.column("id").to_pylist() == ["e2"]


def test_a_bad_batch_does_not_spoil_its_neighbours() -> None:
    good = two_events(b"{}", b"{}").to_bytes()
    bad = two_events(b"{}", b"junk").to_bytes()
    found = decode_batches([good, b"junk", bad, good])
    assert [isinstance(one, EventBatch) for one in found] == [True, False, False, True]


def test_a_bad_entry_between_good_ones_is_a_dead_letter_of_its_own() -> None:
    (log,) = log_of([STREAM, PAIR, [event(1, "A", x=1)], [event(2, "A", x=9)], [event(3, "U", x=5)]]).values()
    log[3] = type(log[3])(position=log[3].position, kind=log[3].kind, stream="orders", body=log[3].body[:-30])
    rows = ShardState(0).apply(log)
    assert [letter["position"] for letter in bodies(rows, "dead-letter")] == ["1-4"]
    assert [alert["bindings"] for alert in bodies(rows, "alert")] == [{"a": ["e1"], "u": ["e3"]}]


def test_attributes_that_are_damaged_inside_read_as_none() -> None:
    """The event is matched, and each of its attributes reads as null."""
    (log,) = log_of([STREAM, PAIR, [event(1, "A"), event(2, "U")], [event(3, "A", x=1), event(4, "U", x=5)]]).values()
    damaged = two_events(b'{"x": 1}', b'{"x": 5,}').to_bytes()
    log[2] = type(log[2])(position=log[2].position, kind=log[2].kind, stream="orders", body=damaged)
    state = ShardState(0)
    rows = state.apply(log)
    assert state.measures()["orders"]["events"] == 4
    bound = sorted((alert["bindings"]["a"], alert["bindings"]["u"]) for alert in bodies(rows, "alert"))
    assert bound == [(["e1"], ["e4"]), (["e3"], ["e4"])]
    assert bodies(rows, "dead-letter") == []
