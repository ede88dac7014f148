"""Events of several files in one order, portion by portion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runs.merging import Portion, in_order
from streams import Event, EventBatch


@st.composite
def files(draw):
    """Times of the events of each portion of each file."""
    portion = st.lists(st.integers(0, 9), min_size=1, max_size=4)
    return draw(st.lists(st.lists(portion, min_size=1, max_size=4), max_size=3))


def portions_of(content):
    """The portions and, in the order of the files, their events."""
    portions, events = [], []
    for file, parts in enumerate(content):
        row = 0
        for times in parts:
            found = [
                Event(id=f"{file}-{row + n}", type="A", time_us=time_us, key="k") for n, time_us in enumerate(times)
            ]
            batch = EventBatch.from_events(found)
            portions.append(Portion(first_us=min(times), place=(file, 0, row), events=batch))
            events += found
            row += len(times)
    return portions, events


@pytest.mark.parametrize("rows", [1, 3, 1_000])
@given(files())
def test_events_come_by_time_and_place(rows, content):
    portions, events = portions_of(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.runs.merging.BATCH_ROWS", rows)
        by_first = sorted(portions, key=lambda one: (one.first_us, one.place))
        found = [event for batch in in_order(by_first, is_ordered=False) for event in batch.to_events()]
        kept = [event for batch in in_order(portions, is_ordered=True) for event in batch.to_events()]
    assert found == sorted(events, key=lambda event: event.time_us)
    assert kept == events


def test_no_more_is_held_than_overlaps(monkeypatch):
    monkeypatch.setattr("pipeline.runs.merging.BATCH_ROWS", 2)
    portions, _ = portions_of([[[0, 1], [2, 3], [4, 5], [6, 7]], [[5, 5]]])
    by_first = sorted(portions, key=lambda one: (one.first_us, one.place))
    assert [len(batch) for batch in in_order(by_first, is_ordered=False)] == [2, 2, 1, 3, 2]
