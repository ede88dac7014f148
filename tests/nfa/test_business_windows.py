"""WITHIN in business time: the run engine against the reference, whose deadline is a walk over microseconds."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nfa import CaseQuery, Matcher, PatternRefused, parse_pattern
from nfa.automata.pattern_automaton import build_automaton
from nfa.language.placement import check_window
from nfa.runs.program import is_ordered
from nfa.syntax import BusinessTime
from streams import EventBatch
from streams.tables import BusinessHours, Tables
from tests.builders.patterns import FEATURES, patterns, splits, traces
from tests.builders.runs import RunHarness
from tests.nfa.test_runs import both_ties, cut, trace, wanted

LEFT_OUT = {"not_leading", "within"}


@dataclass(frozen=True)
class ToyTables(Tables):
    """Tables whose only calendar has some microseconds of business time."""

    open_us: frozenset[int] = field(default_factory=frozenset)

    def hours(self, calendar, times_us, size):
        assert calendar == "toy"
        opens = np.array([-5, *sorted(self.open_us)], np.int64)
        days = np.array([-10, *([-4] * len(self.open_us))]), np.array([-4, *([1000] * len(self.open_us))])
        if size:
            yield np.arange(size), BusinessHours.of_intervals("UTC", opens, opens + 1, *days)


def checked(pattern, events, ties, places, *, is_open, open_us, reloads=False):
    automaton = build_automaton(pattern)
    made = RunHarness(ties=ties)
    made.tables = ToyTables(open_us=open_us)
    made.configure([automaton])
    for part in cut(events, places):
        made.feed(part)
        if reloads:
            made.reload()
    if not is_open:
        made.finish()
    matches, timeouts, _ = wanted(pattern, events, ties, is_open=is_open, open_us=open_us)
    got = [(bindings, when) for _, _, bindings, when in made.matches]
    newest = events[-1].time_us if events else 0
    if is_open and (ties == "simultaneous" or automaton.is_trailing):
        matches = [match for match in matches if match[1] < newest]
        got = [match for match in got if match[1] < newest]
    if is_ordered(automaton, is_simultaneous=ties == "simultaneous"):
        assert got == matches
    else:
        assert sorted(set(got)) == sorted(matches)
    assert sorted((bindings, when) for _, _, bindings, when in made.timeouts) == sorted(timeouts)


@settings(max_examples=500, deadline=None)
@given(
    pattern=patterns(features=FEATURES - LEFT_OUT),
    events=traces(max_size=6),
    ties=both_ties,
    is_open=st.booleans(),
    amount=st.integers(1, 6),
    open_us=st.frozensets(st.integers(0, 30), max_size=20),
    data=st.data(),
)
def test_matches_and_timeouts_equal_those_of_the_reference(pattern, events, ties, is_open, amount, open_us, data):
    business = BusinessTime(calendar="toy", us=amount)
    timed = replace(pattern, within_us=None, within_business=business, timeouts=data.draw(st.booleans()))
    try:
        check_window(timed)
    except PatternRefused:
        assume(False)
    places = data.draw(splits(len(events)))
    checked(timed, events, ties, places, is_open=is_open, open_us=open_us, reloads=data.draw(st.booleans()))


@pytest.mark.parametrize(
    ("open_us", "due"), [({3, 4, 5, 6}, [5]), ({1, 9}, [10]), ({9}, []), ({0, 1, 2}, [3])], ids=str
)
def test_a_missing_event_is_reported_at_the_deadline(open_us, due):
    pattern = parse_pattern("PATTERN p EVENT SEQ(A a, NOT B b) WITHIN 2 business us OF toy")
    made = RunHarness()
    made.tables = ToyTables(open_us=frozenset(open_us))
    made.configure([build_automaton(pattern)])
    made.feed(trace("A1"))
    made.pass_time(1_000)
    assert [when for *_, when in made.matches] == due
    assert (made.engine.runs > 0) == (not due)


def test_a_deadline_is_that_of_the_calendar_when_the_first_event_came():
    text = "PATTERN p EVENT SEQ(A a, B b) WITHIN 2 business us OF toy"
    first, second = (replace(EventBatch.from_events(trace(one)), tables=None) for one in ("A1", "A2 B4"))
    matcher = Matcher()
    matcher.add_pattern(text)
    matcher.process(replace(first, tables=ToyTables(open_us=frozenset([1, 2, 3]))))
    matcher = Matcher.load(matcher.dump(), {})
    found = matcher.process(replace(second, tables=ToyTables(open_us=frozenset([2, 7, 8]))))
    assert [one.start_us for one in found.matches()] == [2]


def test_open_traces_and_replaced_versions_know_the_deadline():
    text = "PATTERN p EVENT SEQ(A a, B b, {}) WITHIN 2 business us OF toy"
    tables = ToyTables(open_us=frozenset([1, 5, 6, 9]))

    def batch(events):
        return replace(EventBatch.from_events(trace(events)), tables=tables)

    matcher = Matcher(tracks="listed")
    matcher.add_pattern(text.format("C c"))
    matcher.process(batch("A2 B3"))
    (case,) = matcher.open_cases(CaseQuery(limit=1)).cases
    assert [one.furthest and one.furthest.expires_us for one in case.patterns] == [7]
    matcher.add_pattern(text.format("D d"), version=2, drains=True)
    assert len(matcher.versions) == 2
    assert [one.version for one in matcher.process(batch("C6")).matches()] == [1]
    matcher.process(batch("X8"))
    assert len(matcher.versions) == 1
