"""The budget of partial matches that the events of a trace may meet."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher, Overflow
from nfa.automata.pattern_automaton import build_automaton
from nfa.errors import StateFormatError
from nfa.kernels.runs.tables import LATEST
from nfa.language.parsing import parse_pattern
from streams import Event, EventBatch, WorkBudget
from tests.builders.runs import RunHarness

RISING = "SEQ(A{3} a [v > coalesce(prev(v), -1)], B b)"
LIMIT, PER_EVENT = 500, 10
SMALL = WorkBudget(per_event=PER_EVENT, per_trace=LIMIT)


def event(number: int, kind: str = "A", key: str = "k") -> Event:
    return Event(id=f"{key}{number}", type=kind, time_us=number, key=key, data={"v": number})


def matcher(*texts: str, end_events: Sequence[str] = (), budget: WorkBudget = SMALL) -> Matcher:
    made = Matcher(end_events=end_events)
    for number, text in enumerate(texts):
        made.add_pattern(f"PATTERN p{number} EVENT {text}", budget=budget)
    return made


def fed(made: Matcher, events: Sequence[Event]) -> tuple[list[tuple[str, str]], list[Overflow]]:
    """Pattern and key of each match, and where a pattern was given up."""
    output = made.process(EventBatch.from_events(list(events)))
    matches = [(match.pattern, match.key) for match in output.matches()]
    return matches, [overflow for overflow in output.overflows() if overflow.work]


def in_parts(
    made: Matcher, events: Sequence[Event], places: Iterable[int]
) -> tuple[list[tuple[str, str]], list[Overflow]]:
    """As ``fed``, with the matches in order, of batches that begin at some places and are saved in between."""
    matches: list[tuple[str, str]] = []
    given_up: list[Overflow] = []
    borders = [0, *sorted(place for place in places if place < len(events)), len(events)]
    for first, last in itertools.pairwise(borders):
        found = fed(made, events[first:last])
        matches += found[0]
        given_up += found[1]
        made = Matcher.load(made.dump(), {})
    return sorted(matches), given_up


def test_ten_thousand_rising_values_are_given_up_early_and_all_else_goes_on():
    made = matcher(RISING, "SEQ(A a [v = 7], C c)")
    matches, (given_up,) = fed(made, [event(number) for number in range(10_000)])
    assert (matches, given_up.pattern, given_up.key) == ([], "p0", "k")
    assert int(given_up.event_id[1:]) < 60
    assert LIMIT < given_up.work < 2 * LIMIT
    assert made.stats.nodes <= 1  # of the other pattern
    assert made.stats.held <= 1
    later = [
        event(10_000, "B"),
        event(10_001, "C"),
        *(event(10_002 + n, "A", "m") for n in range(3)),
        event(10_005, "B", "m"),
    ]
    matches, given_up_later = fed(made, later)
    assert sorted(matches) == [("p0", "m"), ("p1", "k")]
    assert given_up_later == []


def test_the_next_trace_of_the_key_is_matched_again():
    made = matcher(RISING, end_events=["End"])
    assert fed(made, [event(n) for n in range(100)])[1]
    assert fed(made, [event(100, "End"), *(event(n) for n in range(101, 104)), event(104, "B")]) == ([("p0", "k")], [])


@pytest.mark.parametrize(("runs", "is_given_up"), [(PER_EVENT - 1, False), (2 * PER_EVENT, True)])
def test_only_what_an_event_meets_beyond_its_allowance_counts(runs, is_given_up):
    made = matcher(f"SEQ(A a [v < {runs}], A+ b [v > a.v + 1000000], C c)")
    _, given_up = fed(made, [event(n) for n in range(2_000)])
    assert bool(given_up) is is_given_up
    assert (made.stats.nodes == 0) is is_given_up


@settings(max_examples=40, deadline=None)
@given(
    kinds=st.text(alphabet="AAAAAAAB", min_size=20, max_size=80),
    places=st.sets(st.integers(0, 80), max_size=4),
    text=st.sampled_from(
        [RISING, RISING + " WITHIN 30 us", "SEQ(A+ a [v > coalesce(prev(v), -1)], NOT B n) WITHIN 9 us"]
    ),
)
def test_any_split_and_saving_in_between_give_up_at_the_same_event(kinds, places, text):
    events = [event(n, kind, "km"[n % 2]) for n, kind in enumerate(kinds)]
    budget = WorkBudget(per_event=5, per_trace=100)
    whole = fed(matcher(text, budget=budget), events)
    assert in_parts(matcher(text, budget=budget), events, places) == (sorted(whole[0]), whole[1])


def test_state_that_was_saved_before_work_was_counted_still_loads():
    automata = [build_automaton(parse_pattern(f"PATTERN p EVENT {RISING}"))]
    made = RunHarness()
    made.configure(automata)
    made.feed([event(number) for number in range(5)])
    arrays = made.dump()
    assert arrays.pop("run_pair_work").tolist() == [0]
    fresh = RunHarness()
    fresh.configure(automata)
    fresh.engine.load_arrays(arrays, traces=1, sequences=5)
    assert fresh.engine.runs == made.engine.runs > 0


@pytest.mark.parametrize("work", [-1, int(LATEST)])
def test_work_that_cannot_be_is_refused(work):
    automata = [build_automaton(parse_pattern(f"PATTERN p EVENT {RISING}"))]
    made = RunHarness()
    made.configure(automata)
    made.feed([event(number) for number in range(5)])
    arrays = {**made.dump(), "run_pair_work": np.array([work], np.int64)}
    with pytest.raises(StateFormatError):
        made.engine.load_arrays(arrays, traces=1, sequences=5)
