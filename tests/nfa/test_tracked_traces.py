"""The traces that a matcher tracks: with bound events, all, or all with keys and times."""

from __future__ import annotations

import numpy as np
import pytest

from nfa import CaseQuery, Matcher, Tracked
from nfa.kernels.open_traces import MOST_COUNTED, OpenTimes, note
from streams import Event, EventBatch

PATTERN = "PATTERN p EVENT SEQ(A a, B b)"


def matcher_of(tracks: Tracked) -> Matcher:
    matcher = Matcher(tracks=tracks)
    matcher.add_pattern(PATTERN)
    events = [Event(id=f"{key}{n}", type="A", time_us=n, key=key, data={}) for n, key in enumerate(["k", "l", "k"])]
    matcher.process(EventBatch.from_events(events))
    return matcher


def test_only_a_matcher_that_lists_traces_answers_questions_about_them() -> None:
    assert {case.key: case.events for case in matcher_of("listed").open_cases(CaseQuery()).cases} == {"k": 2, "l": 1}
    for tracks in ("bound", "all"):
        with pytest.raises(ValueError, match="tracks='listed'"):
            matcher_of(tracks).open_cases(CaseQuery())


def test_a_matcher_that_tracks_all_traces_knows_their_keys_without_listing_them() -> None:
    listed, plain = matcher_of("listed"), matcher_of("all")
    assert sorted(plain.open_keys()) == sorted(listed.open_keys())
    assert len(plain.open_keys()) == 2
    assert listed.stats.state_bytes - plain.stats.state_bytes == 2 * 28
    assert len(plain.dump()) < len(listed.dump())


def test_an_unknown_way_of_tracking_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of bound, all, listed"):
        Matcher(tracks="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tracks", "lists_open_traces", "answers"),
    [("all", False, None), ("all", True, 2), ("listed", False, 0), ("listed", True, 0), ("bound", True, None)],
)
def test_a_loaded_matcher_lists_traces_if_either_side_does(
    tracks: Tracked, lists_open_traces: bool, answers: int | None
) -> None:
    matcher = Matcher.load(matcher_of(tracks).dump(), {}, lists_open_traces=lists_open_traces)
    if answers is None:
        with pytest.raises(ValueError, match="tracks='listed'"):
            matcher.open_cases(CaseQuery())
    else:
        found = matcher.open_cases(CaseQuery())
        assert (found.total, found.unnamed) == (2, answers)


def test_the_number_of_events_of_a_trace_stays_at_its_maximum() -> None:
    def one(value: int, dtype: type[np.generic]) -> np.ndarray:
        return np.array([value], dtype)

    events = one(MOST_COUNTED - 1, np.int32)
    times = OpenTimes(one(0, np.int64), one(0, np.int64), events, one(1, np.int32))
    for _ in range(3):
        visit = one(0, np.int32), one(0, np.int32), one(False, np.bool_)
        note(times, visit, one(1, np.int32), one(5, np.int64), one(1, np.int32), 9, np.empty(1, np.int32))
    assert (events[0], times.newest[0]) == (MOST_COUNTED, 5)
