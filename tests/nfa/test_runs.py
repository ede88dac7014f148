"""The run engine against the reference, and what must not change its findings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton
from nfa.language.parsing import parse_pattern
from nfa.runs.program import is_ordered
from nfa.syntax import Pattern
from streams import Event, Ties
from tests.builders.patterns import FEATURES, patterns, splits, traces
from tests.builders.runs import ResultRecord, RunHarness
from tests.references.patterns.outcome import reference_outcome

BOUNDED = settings(max_examples=150, deadline=None)
both_ties: st.SearchStrategy[Ties] = st.sampled_from(["log", "simultaneous"])
GROUPS = [
    "or and optional next strict gap_limit",
    "kleene bounded greedy until each cross aggregates",
    "not_between not_leading not_trailing gap_limit strict within optional",
    "after limit timeouts within optional greedy not_trailing or",
    "span within and bounded gap_limit where types any_type",
]
TIMED = [
    "and or optional",
    "kleene bounded greedy until each next strict",
    "not_between not_leading not_trailing gap_limit strict optional",
    "after limit optional greedy where or and",
]


def automaton(text: str) -> PatternAutomaton:
    return build_automaton(parse_pattern("PATTERN p EVENT " + text))


def trace(text: str, key: str = "k") -> list[Event]:
    """``A1 B2:5``: an event A at 1, an event B at 2 with v = 5."""
    events = []
    for number, word in enumerate(text.split()):
        body, _, value = word.partition(":")
        attributes = {"v": int(value)} if value else {}
        event_type, time_us = body[0], int(body[1:])
        events.append(Event(id=f"{key}{number}", type=event_type, time_us=time_us, key=key, data=attributes))
    return events


def harness(*texts: str, ties: Ties = "log", match_limit: int = 10_000, run_limit: int = 100_000) -> RunHarness:
    made = RunHarness(ties=ties, match_limit=match_limit, run_limit=run_limit)
    made.configure([automaton(text) for text in texts])
    return made


def found_in(events: Sequence[Event], *texts: str, ties: Ties = "log") -> list[str]:
    """Matches as texts."""
    made = harness(*texts, ties=ties)
    made.feed(events)
    made.finish()
    return shown(made.matches)


def shown(told: Sequence[ResultRecord]) -> list[str]:
    return [" ".join(f"{alias}={','.join(ids)}" for alias, ids in bindings) for _, _, bindings, _ in told]


def cut(events: Sequence[Event], places: Sequence[int]) -> list[Sequence[Event]]:
    borders = [0, *places, len(events)]
    return [events[first:last] for first, last in itertools.pairwise(borders)]


def wanted(
    pattern: Pattern, events: Sequence[Event], ties: Ties, *, is_open: bool, open_us: frozenset[int] = frozenset()
) -> tuple[list, list, int]:
    outcome = reference_outcome(pattern, events, ties=ties, is_open=is_open, open_us=open_us)
    matches = [
        (tuple((alias, tuple(events[n].id for n in places)) for alias, places in sorted(m.bindings.items())), when)
        for m, when in ((m, m.detected_us) for m in outcome.matches)
    ]
    timeouts = [
        (tuple((alias, tuple(events[n].id for n in places)) for alias, places in sorted(m.bindings.items())), m.due_us)
        for m in outcome.timeouts
    ]
    return matches, timeouts, outcome.dropped


def check(pattern: Pattern, events: Sequence[Event], ties: Ties, places: Sequence[int], *, is_open: bool) -> RunHarness:
    """Compare with the reference; what waits for a time is emitted when it is past, all else at once."""
    one = build_automaton(pattern)
    made = RunHarness(ties=ties)
    made.configure([one])
    for part in cut(events, places):
        made.feed(part)
    if not is_open:
        made.finish()
    matches, timeouts, dropped = wanted(pattern, events, ties, is_open=is_open)
    got = [(bindings, when) for _, _, bindings, when in made.matches]
    newest = events[-1].time_us if events else 0
    is_undecided = is_open and any(when >= newest for _, when in matches)
    if is_open and (ties == "simultaneous" or one.is_trailing):
        matches = [match for match in matches if match[1] < newest]
        got = [match for match in got if match[1] < newest]
    if is_ordered(one, is_simultaneous=ties == "simultaneous"):
        assert got == matches
    else:
        assert sorted(set(got) if one.may_repeat else got) == sorted(matches)
    assert sorted((bindings, when) for _, _, bindings, when in made.timeouts) == sorted(timeouts)
    assert made.lost[1] == 0
    assert is_undecided or made.lost[0] == dropped
    return made


@pytest.mark.parametrize("features", GROUPS)
@BOUNDED
@given(data=st.data(), ties=both_ties, is_open=st.booleans())
def test_agrees_with_the_reference_on_a_group_of_features(features, data, ties, is_open):
    pattern = data.draw(patterns(features=FEATURES.intersection(features.split())))
    events = data.draw(traces(max_size=6))
    made = check(pattern, events, ties, data.draw(splits(len(events))), is_open=is_open)
    assert is_open or (made.engine.held, made.engine.runs) == (0, 0)


@settings(max_examples=400, deadline=None)
@given(pattern=patterns(), events=traces(max_size=6), ties=both_ties, is_open=st.booleans(), data=st.data())
def test_agrees_with_the_reference_on_the_whole_language(pattern, events, ties, is_open, data):
    made = check(pattern, events, ties, data.draw(splits(len(events))), is_open=is_open)
    assert is_open or (made.engine.held, made.engine.runs) == (0, 0)


@pytest.mark.parametrize("features", TIMED)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), ties=both_ties, is_open=st.booleans(), within_us=st.integers(1, 8))
def test_timeouts_agree_with_the_reference(features, data, ties, is_open, within_us):
    pattern = data.draw(patterns(features=FEATURES.intersection(features.split())))
    timed = replace(pattern, within_us=within_us, timeouts=True)
    events = data.draw(traces(max_size=7))
    check(timed, events, ties, data.draw(splits(len(events))), is_open=is_open)


@pytest.mark.compiled
def test_many_partial_matches_time_out_at_once():
    made = harness("AND(A a, B b, C c) WITHIN 500 us EMIT TIMEOUTS")
    made.feed(trace(" ".join(f"{'AB'[number % 2]}{number}" for number in range(300))))
    made.pass_time(499)
    assert made.timeouts == []
    made.pass_time(10_000)
    assert len(made.timeouts) == len(set(made.timeouts)) == 150 * 150
    assert (made.engine.held, made.engine.runs) == (0, 0)


@BOUNDED
@given(pattern=patterns(), events=traces(max_size=6), ties=both_ties)
def test_holds_nothing_once_all_windows_have_passed(pattern, events, ties):
    made = RunHarness(ties=ties)
    made.configure([build_automaton(pattern)])
    made.feed(events)
    made.pass_time(10**9)
    assert pattern.within_us is None or (made.engine.held, made.engine.runs) == (0, 0)
    made.finish()
    assert (made.engine.held, made.engine.runs, made.engine.used_bytes) == (0, 0, made.engine.used_bytes)
    assert not made.engine.held_traces(4).any()


@BOUNDED
@given(pattern=patterns(), events=traces(max_size=8), ties=both_ties, data=st.data())
def test_an_end_event_decides_what_waits_for_the_end(pattern, events, ties, data):
    last = data.draw(st.integers(0, len(events)))
    end = Event(id="end", type="END", time_us=events[-1].time_us if events else 0, key="k")
    made = RunHarness(ties=ties)
    made.configure([build_automaton(pattern)])
    made.feed([*events[:last], end], end_types=["END"])
    assert (made.engine.held, made.engine.runs) == (0, 0)
    assert not made.engine.held_traces(4).any()


@pytest.mark.parametrize(
    ("text", "events", "matches"),
    [
        ("SEQ(A? a GREEDY, A b){2}", "A0 A1", []),
        ("SEQ(B a, SEQ(A? b GREEDY, A c)?, A d)", "B0 A1", ["a=k0 d=k1"]),
        ("SEQ(B b, AND(SEQ(C c, A? a GREEDY, C e), D d))", "B0 C1 D2 A3 C4", None),
        ("SEQ(A a, SEQ(NOT B n, C? c), A b)", "A0 B1 A2", []),
        ("SEQ(A a, OR(SEQ(NOT B n, C? c), SEQ(NOT D m, E? e)), A b)", "A0 B1 A2", ["a=k0 b=k2"]),
        ("SEQ(A a, WITHIN 1 us STRICT NOT B n, C c)", "A0 B1 C2", ["a=k0 c=k2"]),
        ("SEQ(NOT A n [count(n.v) = 0], A a)", "A0:1 A1:1", ["a=k0", "a=k1"]),
    ],
)
def test_corners(text, events, matches):
    found = found_in(trace(events), text)
    if matches is None:
        assert sorted(found) == ["a=k3 b=k0 c=k1 d=k2 e=k4", "b=k0 c=k1 d=k2 e=k4"]
    else:
        assert sorted(set(found)) == matches


def test_traces_and_patterns_do_not_meet():
    made = harness("SEQ(A a, B b)", "SEQ(B b, A a)")
    one, other = trace("A1 B3 A5", "k"), trace("B2 A4 B6", "l")
    made.feed(sorted([*one, *other], key=lambda event: event.time_us))
    keys = {(key, alias_ids) for _, key, alias_ids, _ in made.matches}
    assert keys == {
        ("k", (("a", ("k0",)), ("b", ("k1",)))),
        ("k", (("a", ("k2",)), ("b", ("k1",)))),
        ("l", (("a", ("l1",)), ("b", ("l2",)))),
        ("l", (("a", ("l1",)), ("b", ("l0",)))),
    }


def test_a_dead_state_is_dropped_and_told_once():
    made = harness("SEQ(A a, B b, C c)")
    live = np.ones((2, made.columns), np.bool_)
    live[1] = False
    made.feed(trace("A1 A2 X3 B4 C5"), live=live, monitors=[0, 0, 0, 1, 1, 1])
    assert (made.matches, made.endings) == ([], ["p"])
    assert (made.engine.held, made.engine.runs) == (0, 0)


def test_a_pattern_ends_where_its_last_run_dies_and_none_can_begin():
    made = harness("SEQ(A a, B b, C c)")
    live = np.ones((3, made.columns), np.bool_)
    live[1, 0] = False  # no match can begin any more
    live[2, :2] = False  # and none with only its first event bound can complete
    made.feed(trace("A1 X2 X3 B4 C5"), live=live, monitors=[0, 0, 1, 2, 2, 2])
    assert (made.matches, made.endings) == ([], ["p"])


def test_what_is_complete_waits_on_though_its_state_is_dead():
    made = harness("SEQ(A a, NOT B n) WITHIN 5 us")
    live = np.zeros((2, made.columns), np.bool_)
    live[0] = True
    made.feed(trace("A1 X2"), live=live, monitors=[0, 0, 1])
    made.pass_time(6)
    assert shown(made.matches) == ["a=k0"]


@BOUNDED
@given(events=traces(max_size=8), ties=both_ties, data=st.data())
def test_dead_states_that_cannot_complete_lose_nothing(events, ties, data):
    text = data.draw(st.sampled_from(["SEQ(A a, B b, C c)", "AND(A a, B b)", "SEQ(A+ a, B b) SELECT NEXT"]))
    plain, guarded = harness(text, ties=ties), harness(text, ties=ties)
    plain.feed(events)
    last = data.draw(st.integers(0, len(events)))
    rest = {event.type for event in events[last:]}
    one = automaton(text)
    alive = list(one.accepting)
    for _ in one.states:
        for step in one.transitions:
            alive[step.source] |= alive[step.target] and bool(rest & set(one.atoms[step.atom].types))
    live = np.array([[True] * len(alive), alive])
    guarded.feed(events, live=live, monitors=[0] * last + [1] * (len(events) + 1 - last))
    assert sorted(guarded.matches) == sorted(plain.matches)
    assert len(guarded.endings) <= 1


@pytest.mark.parametrize("text", ["SEQ(A a, B b, C c)", "SEQ(A a, NOT C n) WITHIN 99 us", "A+ a"])
def test_runs_beyond_the_limit_are_counted(text):
    made = harness(text, run_limit=3)
    made.feed(trace("A1 A2 A3 A4 A5"))
    assert made.engine.runs <= 3
    assert made.lost[1] > 0


def test_matches_beyond_the_limit_are_counted():
    made = harness("SEQ(A a, B b)", match_limit=2)
    made.feed(trace("A1 A2 A3 B4 B5"))
    assert (len(made.matches), made.lost) == (4, (2, 0))


@pytest.mark.parametrize("ties", ["log", "simultaneous"])
def test_a_limit_of_the_pattern_replaces_that_of_all(ties):
    made = harness("SEQ(A a, B b) LIMIT 4", ties=ties, match_limit=2)
    made.feed(trace("A1 A2 A3 A4 A5 A6 B7"))
    made.finish()
    assert (len(made.matches), made.lost) == (4, (2, 0))


def test_room_grows_with_what_is_held():
    made = harness("SEQ(A a, B b, C c)")
    made.feed(trace(" ".join(f"A{number}" for number in range(300))))
    made.feed(trace("B300 C301"))
    assert len(made.matches) == 300
    made.finish()
    assert (made.engine.held, made.engine.peak_held) == (0, 302)


@pytest.mark.compiled
def test_texts_that_nothing_reads_any_more_are_forgotten():
    made = harness("SEQ(A a, B b [v = a.v]) WITHIN 5 us")
    for start in range(0, 20_000, 500):
        made.feed(
            [
                Event(id=f"e{n}", type="AB"[n % 2], time_us=n, key="k", data={"v": f"text {n - n % 2}"})
                for n in range(start, start + 500)
            ]
        )
    assert len(made.matches) == 10_000
    assert made.engine.used_bytes < 200_000


def test_a_late_listener_type_is_wanted():
    made = harness("SEQ(A a, STRICT B b)", "SEQ(A a, B b)")
    codes = {"A": 0, "B": 1}
    assert {want.type_code for want in made.engine.wants(codes)} == {0, 1, 2}
