"""Rows that are no events but end the trace of their key: what a derived stream hands on with its events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher, MatchOutput, describe_pattern
from streams import Event, EventBatch, key_hash
from tests.builders.patterns import event_lists, patterns

TEXTS = (
    "PATTERN never EVENT SEQ(A a, NOT N)",
    "PATTERN plain EVENT SEQ(A a, B b)",
    "PATTERN alone EVENT SEQ(A a, NOT _)",
    "PATTERN timed EVENT SEQ(A a, NEXT B b, NOT N) WITHIN 9 us",
    "PATTERN once EVENT SEQ(A a, B b, NOT N) SELECT ONCE PER KEY",
    "PATTERN finer EVENT SEQ(A a, NOT B) WHERE [key, v]",
    "PATTERN finest EVENT SEQ(A a, NOT B, B b) WHERE [key, v, w]",
    "PATTERN equal EVENT SEQ(A a, B b, NOT A) WHERE a.v = b.v",
)
Row = Event | tuple[str, int]


def batch_of(rows: Sequence[Row]) -> EventBatch:
    """Events, and keys whose traces end at a time."""
    parts = [
        EventBatch.from_events([row])
        if isinstance(row, Event)
        else EventBatch.of_ended(np.array([key_hash(row[0])], np.uint64), np.array([row[1]], np.int64))
        for row in rows
    ]
    return EventBatch.joined(parts) if parts else EventBatch.from_events([])


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Events in the order of time, and ends of traces among them at the time that has come."""
    events = draw(event_lists(max_size=14, keys=("k", "l", "m")))
    found: list[Row] = []
    for event in events:
        found.append(event)
        ending = draw(st.lists(st.sampled_from("klm"), max_size=2))
        found += [(key, event.time_us) for key in ending]
    return found


def step_by_step(matcher: Matcher, given_rows: Sequence[Row]) -> list[MatchOutput]:
    """The matcher's outputs, one for each event or call that ends a trace."""
    return [
        matcher.process(EventBatch.from_events([row]))
        if isinstance(row, Event)
        else matcher.end_traces([row[0]], row[1])
        for row in given_rows
    ]


def told(outputs: Sequence[MatchOutput]) -> list[str]:
    found = [match for output in outputs for match in output.matches()]
    matches = [(one.pattern, one.key, sorted(one.bindings.items()), one.detected_us, one.decided_by) for one in found]
    timeouts = [(one.pattern, one.key, sorted(one.bindings.items())) for output in outputs for one in output.timeouts()]
    return sorted(map(repr, matches)) + sorted(map(repr, timeouts))


def matcher_of(texts: Sequence[str], idle_timeout_us: int | None) -> Matcher:
    matcher = Matcher(end_events=["D"], idle_timeout_us=idle_timeout_us)
    for text in texts:
        matcher.add_pattern(text)
    return matcher


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True),
    rows(),
    st.sampled_from([None, 5]),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_a_row_ends_a_trace_as_a_call_does(texts, given_rows, idle_timeout_us, data) -> None:
    matcher, done, found = matcher_of(texts, idle_timeout_us), 0, []
    while done < len(given_rows):
        size = data.draw(st.integers(1, len(given_rows) - done))
        found.append(matcher.process(batch_of(given_rows[done : done + size])))
        done += size
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
    other = matcher_of(texts, idle_timeout_us)
    assert told(found) == told(step_by_step(other, given_rows))
    assert matcher.stats.open_traces == other.stats.open_traces
    assert matcher.stats.events == sum(isinstance(row, Event) for row in given_rows)


@given(patterns(), rows(), st.data())
@settings(max_examples=150, deadline=None)
def test_random_patterns_see_no_row_that_ends_a_trace(pattern, given_rows, data) -> None:
    texts = [describe_pattern(pattern)]
    matcher, done, found = matcher_of(texts, None), 0, []
    while done < len(given_rows):
        size = data.draw(st.integers(1, len(given_rows) - done))
        found.append(matcher.process(batch_of(given_rows[done : done + size])))
        done += size
    assert told(found) == told(step_by_step(matcher_of(texts, None), given_rows))


def test_what_an_end_decides_is_found_at_its_row() -> None:
    matcher = matcher_of([TEXTS[0], TEXTS[5]], None)
    first = [Event(id=f"{key}1", type="A", time_us=1, key=key, data={"v": 1}) for key in "kl"]
    output = matcher.process(batch_of([first[0], first[1], ("k", 1), first[1], ("l", 4)]))
    places = [(lane.patterns[0].name, lane.places_of(lane.matches.rows).tolist()) for lane in output.lanes]
    assert places == [("never", [2, 4, 4]), ("finer", [2, 4, 4])]


def test_no_event_has_the_type_of_such_a_row() -> None:
    rows_of_events = batch_of([Event(id="a", type="\x00", time_us=1, key="k", data={})])
    assert not rows_of_events.is_ended.any()
    assert batch_of([("k", 1)]).is_ended.tolist() == [True]
