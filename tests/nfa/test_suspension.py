"""The second budget: a pattern that is given up in too many traces is suspended."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import ConstraintSet, Exclusive, Monitor, Prior
from nfa import Matcher, Overflow
from nfa.errors import StateFormatError
from nfa.runs.accounts import Account, restored, saved
from streams import Event, EventBatch, WorkBudget

RISING = "SEQ(A{3} a [v > coalesce(prev(v), -1)], B b)"
BUDGET = WorkBudget(per_event=5, per_trace=100, traces=2, forgiven_after=1_000)
ResultRecord: TypeAlias = tuple[list[tuple[str, int, str]], list[Overflow]]
"""Pattern, version and key of each match, in order, and where a pattern was given up."""


def event(number: int, kind: str = "A", key: str = "k") -> Event:
    return Event(id=f"{key}{number}", type=kind, time_us=number, key=key, data={"v": number})


def matcher(*texts: str, budget: WorkBudget = BUDGET) -> Matcher:
    made = Matcher()
    for number, text in enumerate(texts):
        made.add_pattern(f"PATTERN p{number} EVENT {text}", budget=budget)
    return made


def fed(made: Matcher, events: Sequence[Event]) -> ResultRecord:
    output = made.process(EventBatch.from_events(list(events)))
    matches = [(match.pattern, match.version, match.key) for match in output.matches()]
    return sorted(matches), [overflow for overflow in output.overflows() if overflow.work]


def in_parts(made: Matcher, events: Sequence[Event], places: Iterable[int]) -> ResultRecord:
    matches, given_up = [], []
    borders = [0, *sorted(place for place in places if place < len(events)), len(events)]
    for first, last in itertools.pairwise(borders):
        found = fed(made, events[first:last])
        matches += found[0]
        given_up += found[1]
        made = Matcher.load(made.dump(), {})
    return sorted(matches), given_up


def rising(*keys: str, each: int = 30) -> list[Event]:
    """Traces one after the other, in each of which the pattern is given up."""
    return [event(number, key=key) for key in keys for number in range(each)]


def test_one_trace_too_many_suspends_the_pattern_and_frees_what_it_held():
    made = matcher(RISING, "SEQ(A a [v = 7], C c)")
    open_trace = [event(number, key="open") for number in range(3)]
    _, given_up = fed(made, [*open_trace, *rising("k", "l")])
    assert [(loss.key, loss.suspends) for loss in given_up] == [("k", False), ("l", False)]
    assert made.stats.nodes > 0
    _, (last,) = fed(made, rising("m"))
    assert (last.pattern, last.key, last.suspends) == ("p0", "m", True)
    assert made.stats.nodes == 3  # of the other pattern: one in each of k, l and m
    matches, given_up = fed(made, [event(90, "B", "open"), *rising("n"), event(91, "B", "n"), event(92, "C", "n")])
    assert matches == [("p1", 1, "n")]
    assert given_up == []


def test_matches_of_the_event_that_suspends_it_are_told_and_none_after():
    text = "SEQ(A+ a [v > coalesce(prev(v), -1)], NEXT B b)"
    made = matcher(text, budget=replace(BUDGET, traces=0))
    matches, given_up = fed(made, [*rising("k", each=4), event(5, "B"), event(6), event(7), event(8), event(9, "B")])
    assert [loss.suspends for loss in given_up] == [True]
    assert given_up[0].event_type in ("A", "B")
    assert all(key == "k" for _, _, key in matches)
    assert made.stats.nodes == 0
    assert fed(made, [event(10, key="z"), event(11, "B", "z")]) == ([], [])


def test_traces_that_end_or_are_given_up_by_a_guard_say_nothing_of_a_suspended_pattern():
    made = Matcher(end_events=["End"])
    made.add_pattern(f"PATTERN p0 EVENT {RISING}", budget=replace(BUDGET, traces=0))
    guard = Monitor(ConstraintSet((Exclusive("B", "X"), Prior("A", "Y"))))
    made.set_guard(1, guard)
    open_trace = [event(number, key="open") for number in range(3)]
    assert fed(made, [*open_trace, *rising("k")])[1][0].suspends
    made = Matcher.load(made.dump(), {1: guard})
    output = made.process(
        EventBatch.from_events([event(90, "X", "open"), event(91, "End", "open"), event(92, "Y", "k")])
    )
    assert (output.endings(), output.matches()) == ([], [])
    assert made.stats.nodes == 0


def test_traces_are_forgiven_after_so_many_events():
    slow = replace(BUDGET, forgiven_after=30)
    made = matcher(RISING, budget=slow)
    quiet = [event(number, "Z", "quiet") for number in range(60)]
    for round_ in range(5):
        _, given_up = fed(made, [*rising(f"k{round_}"), *quiet])
        assert [loss.suspends for loss in given_up] == [False]
    _, given_up = fed(made, rising(*(f"m{number}" for number in range(4)), each=12))
    assert [loss.suspends for loss in given_up] == [False, False, True]


@pytest.mark.parametrize("drains", [False, True])
def test_a_changed_version_and_the_same_one_added_again_are_matched(drains):
    made = matcher(RISING, budget=replace(BUDGET, traces=0))
    assert fed(made, rising("k"))[1][0].suspends
    made.add_pattern(f"PATTERN p0 EVENT {RISING}", version=2, budget=BUDGET, drains=drains)
    made = Matcher.load(made.dump(), {})
    assert fed(made, [*rising("m", each=3), event(4, "B", "m")])[0] == [("p0", 2, "m")]


def test_what_a_suspended_pattern_waits_for_is_never_told():
    made = matcher("SEQ(A+ a [v > coalesce(prev(v), -1)], NOT B) WITHIN 1 s EMIT TIMEOUTS", budget=BUDGET)
    _, given_up = fed(made, rising("k", "l", "m"))
    assert [loss.suspends for loss in given_up] == [False, False, True]
    made = Matcher.load(made.dump(), {})
    output = made.pass_time(10_000_000)
    assert (output.matches(), output.timeouts()) == ([], [])
    assert made.finish().matches() == []


def test_what_time_had_decided_before_is_told_wherever_batches_end():
    text, budget = "SEQ(A a, NOT B n) WITHIN 9 us", WorkBudget(per_event=0, per_trace=6, traces=0)
    events = [event(0, key="k"), *(event(number, key="m") for number in range(15, 30))]
    matches, (given_up,) = fed(matcher(text, budget=budget), events)
    assert (matches, given_up.event_id, given_up.suspends) == ([("p0", 1, "k")], "m19", True)
    for place in range(1, len(events)):
        assert in_parts(matcher(text, budget=budget), events, [place]) == (matches, [given_up])


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from("AAAAAAAAABZ"), st.sampled_from("kmnop")), min_size=30, max_size=150),
    places=st.sets(st.integers(0, 150), max_size=5),
    text=st.sampled_from(
        [
            RISING,
            RISING + " WITHIN 60 us",
            "SEQ(A+ a [v > coalesce(prev(v), -1)], NOT B n) WITHIN 9 us",
            "SEQ(A a, A b [b.v > a.v], A c [c.v > b.v], B d) SELECT SKIP TO NEXT",
        ]
    ),
    traces=st.integers(0, 3),
    forgiven_after=st.sampled_from([10, 50, 1_000]),
)
def test_any_split_and_saving_in_between_suspend_at_the_same_event(steps, places, text, traces, forgiven_after):
    events = [event(number, kind, key) for number, (kind, key) in enumerate(steps)]
    budget = WorkBudget(per_event=3, per_trace=20, traces=traces, forgiven_after=forgiven_after)
    whole = fed(matcher(text, "SEQ(A a [v > 5], B b)", budget=budget), events)
    assert in_parts(matcher(text, "SEQ(A a [v > 5], B b)", budget=budget), events, places) == whole
    assert sum(loss.suspends for loss in whole[1] if loss.pattern == "p0") <= 1


def test_what_a_pattern_owes_goes_down_by_one_for_each_event():
    account = Account()
    budget = WorkBudget(traces=1, forgiven_after=100)
    assert not account.charge(50, budget)
    assert (account.owed, account.since) == (100, 50)
    assert not account.charge(150, budget)
    assert account.owed == 100
    assert account.charge(249, budget)
    assert (account.owed, account.is_suspended) == (101, True)


def test_accounts_that_cannot_be_are_refused():
    numbers = saved([Account(5, 3, True), Account()])["run_accounts"]
    assert restored({"run_accounts": numbers}, 2, 3) == [Account(5, 3, True), Account()]
    assert restored({}, 1, 3) == [Account()]
    for wrong in (numbers[:5], numbers.astype(float), -numbers, 2 * numbers):
        with pytest.raises(StateFormatError):
            restored({"run_accounts": wrong}, 2, 3)


def test_the_saved_budget_is_the_one_that_was_given_and_damage_is_refused():
    made = Matcher.load(matcher(RISING).dump(), {})
    assert made.patterns["p0"].budget == BUDGET
    usual = Matcher.load(matcher(RISING, budget=WorkBudget()).dump(), {})
    assert usual.patterns["p0"].budget == WorkBudget()
    for wrong in ({"traces": -1}, {"per_event": "x"}, {"more": 1}, [1], {"traces": True}):
        with pytest.raises(ValueError, match=r"budget|traces"):
            WorkBudget.from_json(wrong)
    assert WorkBudget.from_json({"traces": 3}).per_trace == 10_000_000
    assert np.int64(WorkBudget(traces=1_000_000, forgiven_after=1_000_000_000).forgiven_after * 1_000_001) > 0
