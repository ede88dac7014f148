"""The third budget: the work of a pattern in all traces, what conditions read included."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher
from nfa.errors import StateFormatError
from nfa.runs.accounts import Account, restored, saved
from streams import Event, EventBatch, WorkBudget

RISING = "SEQ(A{3} a [v > coalesce(prev(v), -1)], B b)"
BUDGET = WorkBudget(per_event=5, per_trace=10_000, in_all=500)


def event(number: int, kind: str = "A", key: str = "k", **data: object) -> Event:
    return Event(id=f"{key}{number}", type=kind, time_us=number, key=key, data={"v": number, **data})


def matcher(*texts: str, budget: WorkBudget = BUDGET) -> Matcher:
    made = Matcher()
    for number, text in enumerate(texts):
        made.add_pattern(f"PATTERN p{number} EVENT {text}", budget=budget)
    return made


def fed(made: Matcher, events: Sequence[Event]):
    """Pattern and key of each match, and where a pattern was given up."""
    output = made.process(EventBatch.from_events(list(events)))
    matches = [(match.pattern, match.key, match.detected_us) for match in output.matches()]
    return sorted(matches), [overflow for overflow in output.overflows() if overflow.work]


def in_parts(made: Matcher, events: Sequence[Event], places):
    matches, given_up = [], []
    borders = [0, *sorted(place for place in places if place < len(events)), len(events)]
    for first, last in itertools.pairwise(borders):
        found = fed(made, events[first:last])
        matches += found[0]
        given_up += found[1]
        made = Matcher.load(made.dump(), {})
    return sorted(matches), given_up


def interleaved(keys: int, each: int) -> list[Event]:
    """Rising values in many traces at once, none of which costs much."""
    return [event(number, key=f"k{number % keys}") for number in range(keys * each)]


def test_many_traces_that_cost_a_little_suspend_a_pattern_together():
    made = matcher(RISING, "SEQ(A a [v = 7], C c)")
    _, (last,) = fed(made, interleaved(40, 30))
    assert (last.pattern, last.suspends, last.is_in_all, last.work) == ("p0", True, True, BUDGET.in_all + 1)
    assert made.stats.nodes == 1  # of the other pattern
    assert fed(made, [event(9_000, "B", "k1"), event(9_001, "C", "k7")]) == ([("p1", "k7", 9_001)], [])


def test_what_the_events_of_the_stream_allow_is_not_counted():
    slow = [one for first in interleaved(4, 12) for one in (first, *[event(first.time_us, "Z", "quiet")] * 40)]
    assert fed(matcher(RISING), slow)[1] == []
    assert fed(matcher(RISING, budget=replace(BUDGET, per_event=4)), slow)[1] == []
    assert fed(matcher(RISING, budget=replace(BUDGET, per_event=0)), slow)[1] != []


@pytest.mark.parametrize(
    "condition",
    [
        "t LIKE '%a%a%a%' AND a.t LIKE '%b%'",
        "t > a.t",
        "t = min(a.t)",
        "t IN ('x', 'y') OR a.t LIKE '%ba_a%'",
    ],
)
def test_what_conditions_read_of_long_texts_counts(condition):
    def run(size: int):
        made = matcher(f"SEQ(A a, B b [{condition}])", budget=replace(BUDGET, per_event=50, in_all=2_000))
        text = "a" * size
        return fed(made, [event(1, t=text), event(2, t=text), *(event(n, "B", t=text + "a") for n in range(3, 8))])[1]

    assert run(10) == []
    assert [loss.is_in_all for loss in run(200_000)] == [True]


@pytest.mark.parametrize(("condition", "counts"), [("sum(a.v) < 0", True), ("v < 0 - last(a.v)", False)])
def test_what_an_aggregate_reads_counts(condition, counts):
    made = matcher(f"SEQ(A{{40}} a EACH NEXT, B b [{condition}])", budget=replace(BUDGET, per_event=45))
    given_up = fed(made, [*(event(n) for n in range(40)), *(event(n, "B") for n in range(40, 400))])[1]
    assert [loss.is_in_all for loss in given_up] == [True] * counts


def test_an_event_whose_conditions_cost_too_much_is_left_and_gives_no_matches():
    """The work of one event is bounded too: the partial matches that it has not met yet do not meet it any more."""
    made = matcher("SEQ(A a, B b [t LIKE '%x' OR a.v >= 0])", budget=replace(BUDGET, in_all=2_000))
    events = [event(n) for n in range(30)]
    matches, given_up = fed(made, [*events, event(40, "B", t="short")])
    assert (len(matches), given_up) == (30, [])
    matches, (last,) = fed(made, [event(41, "B", t="y" * 64_000)])  # two of them are a thousand each
    assert (matches, last.suspends, last.is_in_all) == ([], True, True)
    assert made.stats.nodes == 0
    assert fed(made, [event(42), event(43, "B", t="x")]) == ([], [])


TEXTS = [
    RISING,
    RISING + " WITHIN 30 us",
    "SEQ(A+ a [v > coalesce(prev(v), -1)], NOT B n) WITHIN 9 us",
    "SEQ(A a, A b [t LIKE '%a%b%' OR v > a.v], B c) WITHIN 12 us",
]


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.text(alphabet="AAAAAAAB", min_size=20, max_size=80),
    places=st.sets(st.integers(0, 80), max_size=4),
    text=st.sampled_from(TEXTS),
    in_all=st.integers(20, 400),
)
def test_any_split_and_saving_in_between_suspend_at_the_same_event(kinds, places, text, in_all):
    events = [event(n, kind, "kml"[n % 3], t="ab" * (n * 7)) for n, kind in enumerate(kinds)]
    budget = replace(BUDGET, per_event=2, in_all=in_all)
    assert in_parts(matcher(text, budget=budget), events, places) == fed(matcher(text, budget=budget), events)


def test_accounts_that_were_saved_before_this_budget_existed_still_load():
    old = np.array([5, 3, 0, 7, 4, 1], np.int64)
    assert restored({"run_accounts": old}, 2, 10) == [Account(5, 3), Account(7, 4, is_suspended=True)]
    accounts = [Account(5, 3, work=8, worked_at=9)]
    assert restored(saved(accounts), 1, 10) == accounts
    assert saved([Account(5, 3)]).keys() == {"run_accounts"}
    for sequences, patterns in ((8, 1), (10, 2)):
        with pytest.raises(StateFormatError):
            restored(saved(accounts), patterns, sequences)
