"""NOT at the end of a pattern is decided as soon as a constraint rules it out, with the same matches as without."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Constraint, ConstraintSet, Exclusive, Monitor, Part, Prior, Require
from nfa import Matcher, MatchOutput
from streams import Event, EventBatch, Ties
from tests.builders.constraints import conforms, constraint_sets
from tests.builders.patterns import batches, splits

PLAIN = "SEQ(A a, NOT X n)"
WINDOW = "SEQ(A a, NOT X n) WITHIN 10 us"
PATTERNS = (
    PLAIN,
    WINDOW,
    "SEQ(A a, NOT B n, NOT X m)",
    "SEQ(A a, WITHIN 3 us NOT X n, NOT B m) WITHIN 6 us",
    "SEQ(A a, B b, NOT X n [v > a.v])",
    "SEQ(A+ a, NOT X n)",
    "SEQ(A a, B? b, NOT X n)",
    "SEQ(A a, C+ c GREEDY, NOT X n)",
    "SEQ(AND(A a, B b), NOT X n)",
)


def events_of(text: str) -> list[Event]:
    """``A1 X2``: an event A at 1, an event X at 2, each its own id."""
    return [Event(id=word, type=word[0], time_us=int(word[1:]), key="k", data={"v": 0}) for word in text.split()]


def outputs(
    pattern: str, parts: Sequence[Part], cuts: Sequence[EventBatch], ties: Ties = "log", *, is_guarded: bool = True
) -> list[MatchOutput]:
    matcher = Matcher(ties=ties)
    matcher.add_pattern(f"PATTERN p EVENT {pattern}")
    if is_guarded:
        matcher.set_guard(1, Monitor(ConstraintSet.of(parts), ties=ties))
    return [*(matcher.process(batch) for batch in cuts), matcher.finish()]


def told(found: Sequence[MatchOutput]) -> list[tuple[str, int, str | None]]:
    matches = [match for output in found for match in output.matches()]
    return [(" ".join(i for ids in m.bindings.values() for i in ids), m.detected_us, m.decided_by) for m in matches]


N4 = (Require("X", "K"), Prior("K", "Z"))


@pytest.mark.parametrize(
    ("parts", "pattern", "text", "wanted"),
    [
        pytest.param([Prior("X", "Z")], PLAIN, "A1 Z3 Y50", [("A1", 3, "constraint")], id="N1"),
        pytest.param([], PLAIN, "A1 Z3 Y50", [("A1", 50, "trace_end")], id="N1-without"),
        pytest.param([Prior("X", "Z")], PLAIN, "A1 X2 A4 Z5", [("A4", 5, "constraint")], id="N2"),
        pytest.param([Exclusive("L", "X")], PLAIN, "L1 A2 Y9", [("A2", 2, "constraint")], id="N3"),
        pytest.param(N4, PLAIN, "A1 Z2 Y9", [("A1", 2, "constraint")], id="N4"),
        pytest.param(N4, PLAIN, "A1 K2 Z3 Y9", [("A1", 9, "trace_end")], id="N4-K-came"),
        pytest.param([], WINDOW, "A1 X12", [("A1", 11, "window")], id="N5"),
        pytest.param([], WINDOW, "A1 X10 Y12", [], id="N5-in-the-window"),
        pytest.param([Require("A", "X")], PLAIN, "X1 A2 Y9", [("A2", 9, "trace_end")], id="N6"),
        pytest.param([Require("A", "X")], PLAIN, "A1 Y9", [], id="N6-dead"),
        pytest.param([Require("A", "X")], WINDOW, "A1 Y12", [("A1", 11, "window")], id="N6-within"),
    ],
)
def test_golden_cases(parts, pattern, text, wanted):
    events = events_of(text)
    for cuts in ([EventBatch.from_events(events)], [EventBatch.from_events([event]) for event in events]):
        found = outputs(pattern, parts, cuts)
        assert told(found) == wanted
        assert [one for output in found for one in output.corrections()] == []


def test_a_match_that_must_be_refuted_is_given_up():
    matcher = Matcher()
    matcher.add_pattern(f"PATTERN p EVENT {PLAIN}")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Require("A", "X")])))
    matcher.process(EventBatch.from_events(events_of("A1")))
    assert matcher.stats.held == 0
    matcher.process(EventBatch.from_events(events_of("X2 A3")))
    assert matcher.stats.held == 1


def test_n7_what_comes_nevertheless_is_a_deviation_and_a_correction():
    events = events_of("A1 Z3 X5 X6 A7")
    for cuts in ([EventBatch.from_events(events)], [EventBatch.from_events([event]) for event in events]):
        found = outputs(PLAIN, [Prior("X", "Z")], cuts)
        assert told(found) == [("A1", 3, "constraint"), ("A7", 7, "trace_end")]
        assert [match.deviating for output in found for match in output.matches()] == [False, True]
        deviations = [one.event_id for output in found for one in output.deviations()]
        corrections = [(one.bindings, one.event_id) for output in found for one in output.corrections()]
        assert (deviations, corrections) == (["X5"], [({"a": ("A1",)}, "X5")])


def test_a_pattern_without_guard_waits():
    matcher = Matcher()
    matcher.add_pattern(f"PATTERN p EVENT {PLAIN}", is_guarded=False)
    matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("X", "Z")])))
    found = [matcher.process(EventBatch.from_events(events_of("A1 Z3 Y9"))), matcher.finish()]
    assert told(found) == [("A1", 9, "trace_end")]


@settings(max_examples=200, deadline=None)
@given(data=st.data(), pattern=st.sampled_from(PATTERNS), ties=st.sampled_from(["log", "simultaneous"]))
def test_on_conforming_traces_the_same_matches_come_and_none_later(data: st.DataObject, pattern: str, ties: Ties):
    word = data.draw(st.text("AABCX", min_size=1, max_size=7))
    drawn = data.draw(constraint_sets("ABCX", max_size=12)).constraints
    parts: list[Constraint] = [one for one in drawn if conforms(ConstraintSet.of([one]), list(word))]
    times = sorted(data.draw(st.lists(st.integers(1, 12), min_size=len(word), max_size=len(word))))
    rows = enumerate(zip(word, times, strict=True))
    events = [Event(id=f"e{n}", type=name, time_us=time, key="k", data={"v": n % 2}) for n, (name, time) in rows]
    cuts = batches(events, data.draw(splits(len(events))))
    plain, guarded = outputs(pattern, parts, cuts, ties, is_guarded=False), outputs(pattern, parts, cuts, ties)
    detected = {bound: when for bound, when, _ in told(guarded)}
    assert sorted(detected) == sorted(bound for bound, _, _ in told(plain))
    assert all(detected[bound] <= when for bound, when, _ in told(plain))
    assert [one for output in guarded for one in output.corrections()] == []
