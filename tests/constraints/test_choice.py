"""Which names a monitor tells apart under a budget."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import (
    Clause,
    ConstraintSet,
    Exclusive,
    Monitor,
    Part,
    Prior,
    Require,
    Rule,
    Settings,
    choose,
    parse_constraints,
    within_cap,
)
from constraints.analysing.frequencies import Frequencies
from constraints.analysing.state_count import count_states
from nfa import EventClass, MonitorState
from tests.builders.constraints import constraint_sets, queries, query_of

TYPES = ("A", "B", "C", "D", "E", "F")


def with_settings(constraint_set: ConstraintSet, **values: object) -> ConstraintSet:
    return ConstraintSet.of(constraint_set.parts, settings=Settings(**values))  # type: ignore[arg-type]


def reached(constraint_set: ConstraintSet, types: tuple[str, ...] = TYPES) -> Iterator[tuple[str, ...]]:
    """For each state of the monitor the first word that leads to it."""
    monitor = Monitor(constraint_set)
    found: dict[MonitorState, tuple[str, ...]] = {monitor.start: ()}
    waiting = [monitor.start]
    for state in waiting:
        for name in types:
            after = monitor.step(state, EventClass(type=name))
            if after is not None and after not in found:
                found[after] = (*found[state], name)
                waiting.append(after)
    yield from found.values()


@settings(max_examples=150, deadline=None)
@given(constraint_sets(TYPES, max_size=9))
def test_no_monitor_has_more_states_than_are_counted(known: ConstraintSet) -> None:
    count = len(list(reached(known)))
    assert count <= count_states(known, 10_000)
    assert count_states(known, 3) == min(4, count_states(known, 10_000))


def test_counting_sees_what_excludes_and_what_must_follow() -> None:
    def counted(*parts: Part, ends: frozenset[str] = frozenset()) -> int:
        known = ConstraintSet(tuple(parts), ends)  # type: ignore[arg-type]
        assert count_states(known, 1_000) == len(list(reached(known)))
        return count_states(known, 1_000)

    assert counted(Exclusive("A", "B")) == 3
    assert counted(Prior("A", "B"), Require("B", "A")) == 3  # nothing, A, both
    assert counted(Exclusive("A", "B"), Exclusive("C", "D")) == 9
    assert counted(Prior("A", "B"), ends=frozenset("C")) == 8
    assert counted(Exclusive("A", "B"), Require("C", "A"), Exclusive("B", "C")) == 5


def test_a_rule_multiplies_the_states_by_its_places() -> None:
    assert count_states(ConstraintSet.of([Rule("response", ("A", "B"))]), 100) == 2
    assert count_states(ConstraintSet.of([Exclusive("A", "B"), Rule("response", ("A", "B"))]), 100) == 6


@settings(max_examples=60, deadline=None)
@given(constraint_sets(TYPES, max_size=9), queries(TYPES), st.integers(1, 40))
def test_the_budget_is_kept_and_nothing_is_lost(known: ConstraintSet, query: object, budget: int) -> None:
    known = with_settings(known, max_monitor_states=budget)
    choice = choose(known, [query])  # type: ignore[list-item]
    small = choice.reduced(known)
    assert len(list(reached(small))) <= choice.estimated_states <= budget
    assert small.names == choice.distinguished
    assert set(small.parts) | set(choice.left_out) == set(known.parts)
    full, reduced = Monitor(known), Monitor(small)
    for word in list(reached(known))[:30]:
        here, there = full.start, reduced.start
        for name in word:
            here, there = full.step(here, EventClass(type=name)), reduced.step(there, EventClass(type=name))  # type: ignore[assignment]
        assert there is not None, "what the whole set allows, a part of it allows"
        kept = np.asarray(reduced.live(there, query))  # type: ignore[arg-type]
        assert (kept | ~np.asarray(full.live(here, query))).all()  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(constraint_sets(TYPES, max_size=9), queries(TYPES), st.integers(1, 30), st.integers(1, 30))
def test_a_greater_budget_leaves_out_no_more(known: ConstraintSet, query: object, budget: int, more: int) -> None:
    small, large = (
        choose(with_settings(known, max_monitor_states=size), [query])  # type: ignore[list-item]
        for size in (budget, budget + more)
    )
    assert small.distinguished <= large.distinguished
    assert set(small.left_out) >= set(large.left_out)


LOCAL = Exclusive("L", "U")
OTHER = [Exclusive(f"X{number}", f"Y{number}") for number in range(6)]


def test_what_ends_matches_is_told_apart_first() -> None:
    known = with_settings(ConstraintSet((*OTHER, LOCAL)), max_monitor_states=3)
    choice = choose(known, [query_of(("SEQ", "A", "U"))])
    assert choice.distinguished == {"L", "U"}
    assert choice.left_out == tuple(OTHER)
    assert choice.reduced(known).constraints == (LOCAL,)
    assert choice.text.splitlines()[0] == ("L and U told apart, 6 constraints left out: at most 3 of 3 monitor states")
    assert "L and U: told apart; saves 0.75 per trace" in choice.text


@pytest.mark.parametrize(("often", "chosen"), [("L", "L"), ("K", "K")])
def test_frequencies_decide(often: str, chosen: str) -> None:
    frequencies = {"L": 0.1, "K": 0.1} | {often: 0.9}
    known = with_settings(
        ConstraintSet((Exclusive("L", "U"), Exclusive("K", "V"))), max_monitor_states=3, frequencies=frequencies
    )
    choice = choose(known, [query_of(("SEQ", "A", ("AND", "U", "V")))])
    assert chosen in choice.distinguished
    assert len(choice.distinguished) == 2


def test_nothing_is_left_out_where_everything_fits() -> None:
    known = ConstraintSet((*OTHER, LOCAL))
    choice = choose(known, [query_of(("SEQ", "A", "U"))])
    assert choice.is_whole
    assert choice.estimated_states == 3**7
    assert choice.reduced(known) == known
    assert choice.text == "all names are told apart: at most 2187 of 65536 monitor states"


def test_the_most_useful_longer_clauses_are_watched() -> None:
    useless = [Clause(frozenset({f"P{n}", f"Q{n}", f"R{n}"}), None) for n in range(3)]
    useful = Clause(frozenset({"A", "B", "C"}), None)
    choice = choose(ConstraintSet((*useless, useful)), [query_of(("SEQ", "X", "C"))], most_watched=2)
    assert choice.watched == (useful, useless[0])
    assert choice.is_whole


def test_frequencies_follow_from_constraints() -> None:
    known = parse_constraints(["existence(E)", "require(E, F)", "absence(N)", "exclusive(A, B)", "require(A, C)"])
    of = Frequencies(with_settings(known.constraint_set, frequencies={"A": 0.9})).of
    assert [of(name) for name in "EFNABCZ"] == [1, 1, 0, 0.9, pytest.approx(0.1), 0.9, 0.5]
    whole = Frequencies(known.constraint_set)
    assert whole.of_all(("A", "B")) == 0
    assert whole.of_all(("C",), condition=frozenset("A")) == 1


def test_constraints_are_left_out_only_where_the_settings_ask_for_it() -> None:
    parts = [Exclusive(one, other) for one, other in ("AB", "CD", "EF")]
    asked = [query_of(("SEQ", "A", "B"))]
    usual = ConstraintSet.of(parts, settings=Settings(max_monitor_states=4))
    assert within_cap(usual, asked) == (usual, ())
    kept, left_out = within_cap(with_settings(usual, max_monitor_states=4, beyond_cap="leave_out"), asked)
    assert set(kept.parts) | set(left_out) == set(parts)
    assert Exclusive("A", "B") in kept.parts
    assert len(left_out) == 2
