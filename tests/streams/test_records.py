"""Positions in the event log."""

from hypothesis import given
from hypothesis import strategies as st

from streams.log.records import RecordKind, log_key, position_order


@given(st.lists(st.tuples(st.integers(0, 2**48), st.integers(0, 2**32)), max_size=6))
def test_positions_sort_by_number_not_by_text(places: list[tuple[int, int]]) -> None:
    positions = [f"{milliseconds}-{sequence}" for milliseconds, sequence in places]
    assert [position_order(position) for position in sorted(positions, key=position_order)] == sorted(places)


def test_a_position_without_sequence_is_the_first_of_its_millisecond() -> None:
    assert position_order("5") == (5, 0)


def test_keys_of_the_log_are_stable() -> None:
    assert [log_key(shard) for shard in (0, 12)] == ["forestall:log:0", "forestall:log:12"]


def test_stored_kinds_are_stable() -> None:
    assert {kind.value for kind in RecordKind} >= {"events", "stream-on", "pattern-on", "pattern-off", "constraints-on"}
