"""Idle timeouts and explicit ends of traces: against a dictionary, and whatever the cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher, StateFormatError
from nfa.traces.idle_traces import IdleTraces
from streams import Event, EventBatch

TIMEOUT_US = 4


def ends_by_dictionary(rows: list[tuple[int, int, bool]]) -> list[tuple[int, int, int]]:
    """(row, key, time) of each end, by definition: row after row, trace after trace."""
    last: dict[int, int] = {}
    newest, found = -(10**9), []
    for row, (key, time_us, is_last) in enumerate(rows):
        newest = max(newest, time_us)
        due = sorted((seen + TIMEOUT_US, known) for known, seen in last.items() if seen + TIMEOUT_US <= newest)
        for when, known in due:
            found.append((row, known, when))
            del last[known]
        if is_last:
            last.pop(key, None)
        else:
            last[key] = max(last.get(key, time_us), time_us)
    return found


def advanced(idle: IdleTraces, rows: list[tuple[int, int, bool]], newest_us: int) -> list[tuple[int, int, int]]:
    keys, times, is_last = zip(*rows, strict=True)
    ended = idle.advance(np.array(keys, np.uint64), np.array(times, np.int64), np.array(is_last), newest_us)
    return list(zip(ended.rows.tolist(), ended.keys.tolist(), ended.times_us.tolist(), strict=True))


HOME = 1 << 32  # keys that share a place in the index, and one far from them
rows_of_traces = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, HOME, HOME + 1, 7 * HOME]), st.integers(0, 30), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(rows_of_traces, st.data())
@settings(max_examples=300, deadline=None)
def test_traces_end_as_a_dictionary_says_whatever_the_cuts(
    rows: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    idle, found, done, newest_us = IdleTraces(TIMEOUT_US), [], 0, -(10**9)
    while done < len(rows):
        size = data.draw(st.integers(1, len(rows) - done))
        part = rows[done : done + size]
        found += [(row + done, key, time_us) for row, key, time_us in advanced(idle, part, newest_us)]
        newest_us = max(newest_us, *(time_us for _, time_us, _ in part))
        done += size
        if data.draw(st.booleans()):
            saved, idle = idle.dump_arrays(), IdleTraces(TIMEOUT_US)
            idle.load_arrays(saved)
    assert found == ends_by_dictionary(rows)


def test_room_is_made_for_many_traces_and_many_ends() -> None:
    idle, size = IdleTraces(10), 20_000
    keys = np.arange(size, dtype=np.uint64) << np.uint64(32)
    none = np.zeros(size, np.bool_)
    assert len(idle.advance(keys, np.arange(size), none, 0)) == size - 10
    assert len(idle) == 10
    assert len(idle.pass_time(10 * size)) == 10
    assert len(idle) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"idle_last": np.array([1, 2**62], np.int64)}, "a time that no event has"),
        ({"idle_key": np.array([5, 5], np.uint64)}, "a key twice"),
        ({"idle_key": np.array([5], np.uint64)}, "length 1"),
    ],
)
def test_damaged_arrays_are_refused(changes: dict[str, np.ndarray], message: str) -> None:
    arrays = {"idle_key": np.array([5, 6], np.uint64), "idle_last": np.array([1, 2], np.int64), **changes}
    with pytest.raises(StateFormatError, match=message):
        IdleTraces(10).load_arrays(arrays)


# --- in the matcher -----------------------------------------------------------------------------------------------


def event(text: str) -> Event:
    """``k A 3``: key, type, time."""
    key, event_type, time_us = text.split()
    return Event(id=f"{key}{event_type}{time_us}", type=event_type, time_us=int(time_us), key=key, data={"v": 1})


def batch(*texts: str) -> EventBatch:
    return EventBatch.from_events([event(text) for text in texts])


def told(output) -> list[tuple]:
    return sorted(
        (match.pattern, match.key, tuple(match.bindings.items()), match.detected_us, match.decided_by)
        for match in output.matches()
    )


NEVER = "PATTERN never EVENT SEQ(A a, NOT N)"


def test_a_trace_ends_before_the_event_that_is_too_late_for_it() -> None:
    matcher = Matcher(idle_timeout_us=10)
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
    matcher.add_pattern(NEVER)
    output = matcher.process(batch("k A 1", "j A 5", "k B 10", "j B 15"))
    assert told(output) == [
        ("never", "j", (("a", ("jA5",)),), 15, "trace_end"),
        ("p", "k", (("a", ("kA1",)), ("b", ("kB10",))), 10, None),
    ]
    assert told(matcher.pass_time(19)) == []
    assert told(matcher.pass_time(20)) == [("never", "k", (("a", ("kA1",)),), 20, "trace_end")]
    assert (matcher.stats.open_traces, matcher.stats.events) == (1, 4)


def test_the_window_decides_what_it_decides_before_the_trace_ends() -> None:
    matcher = Matcher(idle_timeout_us=10)
    matcher.add_pattern("PATTERN never EVENT SEQ(A a, NOT N) WITHIN 4 us")
    assert told(matcher.process(batch("k A 1", "j A 50")))[0][3:] == (5, "window")


def test_nobody_is_shown_the_end_of_a_trace() -> None:
    matcher = Matcher(idle_timeout_us=10)
    matcher.add_pattern("PATTERN pair EVENT SEQ(A a, _ b)")
    matcher.add_pattern("PATTERN alone EVENT SEQ(A a, NOT _)")
    output = matcher.process(batch("k A 1", "j X 50"))
    assert told(output) == [("alone", "k", (("a", ("kA1",)),), 11, "trace_end")]


def test_an_event_of_the_reserved_type_is_an_event() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
    odd = Event(id="x", type="\x00trace-end", time_us=2, key="k", data={})
    events = EventBatch.from_events([event("k A 1"), odd, event("k B 3")])
    assert len(told(matcher.process(events))) == 1


def test_a_trace_ends_by_key_in_all_its_finer_traces() -> None:
    matcher = Matcher()
    matcher.add_pattern(NEVER)
    matcher.add_pattern("PATTERN finer EVENT SEQ(A a, NOT N) WHERE [key, v]")
    matcher.process(batch("k A 1", "j A 5"))
    matcher = Matcher.load(matcher.dump(), {})
    assert told(matcher.end_traces(["k", "unknown"])) == [
        ("finer", "k", (("a", ("kA1",)),), 5, "trace_end"),
        ("never", "k", (("a", ("kA1",)),), 5, "trace_end"),
    ]
    assert told(matcher.end_traces(["k"])) == []
    assert told(matcher.end_traces(["j"], 3))[0][3] == 3
    assert told(matcher.process(batch("k N 6"))) == []


def test_an_end_before_any_event_is_nothing() -> None:
    matcher = Matcher(idle_timeout_us=1)
    matcher.add_pattern(NEVER)
    assert told(matcher.end_traces(["k"], 7)) == []
    assert matcher.newest_us is None


texts_of_patterns = st.sampled_from(
    [
        NEVER,
        "PATTERN plain EVENT SEQ(A a, B b)",
        "PATTERN timed EVENT SEQ(A a, NEXT B b, NOT N) WITHIN 9 us",
        "PATTERN once EVENT SEQ(A a, B b, NOT N) SELECT ONCE PER KEY",
        "PATTERN late EVENT SEQ(A a, B b) WITHIN 6 us EMIT TIMEOUTS",
        "PATTERN finer EVENT SEQ(A a, NOT B) WHERE [key, v]",
    ]
)
steps = st.lists(
    st.tuples(st.sampled_from("kjm"), st.sampled_from(["A", "B", "N", "End"]), st.integers(0, 4)),
    min_size=1,
    max_size=25,
)


@given(st.lists(texts_of_patterns, min_size=1, max_size=3, unique=True), steps, st.data())
@settings(max_examples=60, deadline=None)
def test_idle_ends_are_those_of_end_events_at_the_same_times(texts, happenings, data) -> None:
    """The same stream with an end event in the place of every idle end gives the same, and so does any cut."""
    events, time_us = [], 0
    for key, event_type, pause in happenings:
        time_us += pause
        events.append(event(f"{key} {event_type} {time_us}"))
    idle, plain = Matcher(end_events=["End"], idle_timeout_us=7), Matcher(end_events=["End", "Over"])
    for text in texts:
        idle.add_pattern(text)
        plain.add_pattern(text)
    found, done = [], 0
    while done < len(events):
        size = data.draw(st.integers(1, len(events) - done))
        found += told(idle.process(EventBatch.from_events(events[done : done + size])))
        done += size
        if data.draw(st.booleans()):
            idle = Matcher.load(idle.dump(), {})
    found += told(idle.pass_time(time_us + 7))
    expected = plain.process(EventBatch.from_events(with_ends(events, 7, time_us + 7)))
    assert sorted(found) == told(expected)


def with_ends(events: list[Event], timeout_us: int, until_us: int) -> list[Event]:
    last: dict[str, Event] = {}
    found: list[Event] = []

    def end(now_us: int) -> None:
        for key, newest in sorted(last.items(), key=lambda known: known[1].time_us):
            if newest.time_us + timeout_us <= now_us:
                over = Event(id="over", type="Over", time_us=newest.time_us + timeout_us, key=key, data={"v": 1})
                found.append(over)
                del last[key]

    for one in events:
        end(one.time_us)
        found.append(one)
        last[one.key] = one
        if one.type == "End":
            del last[one.key]
    end(until_us)
    return found


@given(st.integers(0, 20), st.integers(0, 20))
@settings(deadline=None, max_examples=20)
def test_time_that_passed_is_remembered(first: int, second: int) -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN never EVENT SEQ(A a, NOT N) WITHIN 5 us")
    matcher.pass_time(first)
    matcher = Matcher.load(matcher.dump(), {})
    matcher.pass_time(second)
    assert matcher.newest_us == max(first, second)
    matcher.process(batch("k A 0"))
    assert (matcher.stats.out_of_order > 0) == (max(first, second) > 0)
