"""The reorder buffer against its definition, event by event."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from streams import Event, EventBatch, ReorderBuffer

LATENESS_US = 5


def events_at(times_us: list[int]) -> list[Event]:
    return [Event(id=str(number), type="A", time_us=time_us, key="k") for number, time_us in enumerate(times_us)]


def by_definition(times_us: list[int]) -> tuple[list[str], list[str], list[str]]:
    """The ids of the events released in order, of the late events, and of the waiting events."""
    waiting: list[tuple[int, int]] = []
    left, late, newest = [], [], -(10**9)
    for number, time_us in enumerate(times_us):
        if time_us < newest - LATENESS_US:
            late.append(str(number))
            continue
        newest = max(newest, time_us)
        waiting = sorted([*waiting, (time_us, number)])
        left += [str(one) for when, one in waiting if when <= newest - LATENESS_US]
        waiting = [(when, one) for when, one in waiting if when > newest - LATENESS_US]
    return left, late, [str(one) for _, one in waiting]


@given(st.lists(st.integers(0, 30), max_size=30), st.data())
@settings(max_examples=300, deadline=None)
def test_events_leave_in_order_and_late_ones_are_known_whatever_the_cuts(times_us: list[int], data) -> None:
    buffer, left, late, done = ReorderBuffer(LATENESS_US), [], [], 0
    while done < len(times_us):
        size = data.draw(st.integers(1, len(times_us) - done))
        batch = EventBatch.from_events(events_at(times_us)[done : done + size])
        is_late = buffer.is_late(batch.time_us)
        late += batch.take(is_late.nonzero()[0]).columns.column("id").to_pylist()
        left += buffer.push(batch.take((~is_late).nonzero()[0])).columns.column("id").to_pylist()
        done += size
        if data.draw(st.booleans()):
            (head, waiting), buffer = buffer.dump(), ReorderBuffer(LATENESS_US)
            buffer.load(head, waiting)
    expected_left, expected_late, expected_waiting = by_definition(times_us)
    assert (left, late, len(buffer)) == (expected_left, expected_late, len(expected_waiting))
    assert buffer.drain().columns.column("id").to_pylist() == expected_waiting
    assert len(buffer) == 0


def test_time_that_others_saw_lets_events_leave() -> None:
    buffer = ReorderBuffer(LATENESS_US)
    before_us = buffer.watermark_us
    assert before_us is None
    assert len(buffer.push(EventBatch.from_events(events_at([7, 3])))) == 0
    assert buffer.note_time(8).columns.column("id").to_pylist() == ["1"]
    assert buffer.watermark_us == 3
    assert buffer.note_time(5).columns.num_rows == 0
    assert buffer.advance(7).columns.column("id").to_pylist() == ["0"]
    assert buffer.watermark_us == 7


def test_another_lateness_counts_from_here_on_and_takes_nothing_back() -> None:
    buffer = ReorderBuffer(LATENESS_US)
    assert len(buffer.push(EventBatch.from_events(events_at([10, 7])))) == 0
    assert (len(buffer.set_lateness(3)), buffer.watermark_us) == (1, 7)
    assert (len(buffer.set_lateness(9)), buffer.watermark_us) == (0, 7)
    assert (len(buffer.note_time(17)), buffer.watermark_us) == (0, 8)
    assert (len(buffer.set_lateness(0)), buffer.watermark_us) == (1, 17)
    assert (len(ReorderBuffer(LATENESS_US).set_lateness(0)), ReorderBuffer(LATENESS_US).watermark_us) == (0, None)
