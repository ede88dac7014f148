"""Patterns with too many alternatives: partitions in their place, sound against the alternatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import ConstraintSet, check_query, parse_constraints, remainder_of
from nfa import PatternRefused, Query, build_query, parse_pattern
from nfa.automata.guard_view import GuardView, guard_view
from nfa.automata.pattern_automaton import build_automaton
from nfa.registered import registered
from tests.builders.constraints import Tree, constraint_sets, query_of
from tests.builders.patterns import patterns
from tests.references.alive import alive

TYPES = ("A", "B", "C", "D")
WIDE = "SEQ(" + ", ".join(f"OR(A a{i}, SEQ(B b{i}, C|D c{i}))" for i in range(11)) + ", E e)"


def views(query: Query) -> tuple[GuardView, GuardView]:
    """The pattern's automaton as its alternatives see it, and as its partitions do."""
    automaton = build_automaton(query.pattern)
    split = build_query(query.pattern, max_terms=0)
    assert split.partitions
    return guard_view(automaton, query), guard_view(automaton, split)


def live(constraint_set: ConstraintSet, seen: frozenset[str], view: GuardView) -> list[bool]:
    """Which states of the automaton can complete, by the reference."""
    row = [alive(constraint_set, seen, remainder_of(view.query, one)).is_alive for one in view.query.states]
    found: list[bool] = view.live(np.array(row, np.bool_)).tolist()
    return found


def constraints_of(*entries: str) -> ConstraintSet:
    return parse_constraints(list(entries)).constraint_set


def test_a_pattern_with_too_many_alternatives_has_partitions() -> None:
    one = registered(f"PATTERN p EVENT {WIDE}", 1)
    assert len(one.query.partitions) == len(one.query.terms) == 1 + 11 * 4
    assert [atom.type for atom in one.query.terms[0].atoms] == ["E"]
    assert sorted(len(term.atoms) for term in one.query.terms[1:5]) == [2, 2, 3, 3]


def test_a_partition_fails_with_its_own_atoms_and_an_or_with_all_its_alternatives() -> None:
    one = registered(f"PATTERN p EVENT {WIDE}", 1)
    living = live(constraints_of("exclusive(A, X)"), frozenset("X"), one.view)
    assert living[0]
    dead = live(constraints_of("exclusive(A, X)", "exclusive(C, X)", "exclusive(D, X)"), frozenset("X"), one.view)
    last = [state for state, progress in enumerate(one.automaton.states) if progress and progress[0] >= 10]
    assert not dead[0]
    assert any(dead[state] for state in last)
    assert not any(live(constraints_of("exclusive(E, X)"), frozenset("X"), one.view)[: last[0]])


def test_a_pattern_with_too_many_states_has_partitions() -> None:
    branches = ", ".join(f"C c{i}" for i in range(8))
    ors = ", ".join(f"OR(A a{i}, B b{i})" for i in range(8))
    one = registered(f"PATTERN p EVENT SEQ({ors}, AND({branches}))", 1)
    assert one.query.partitions
    assert all(one.view.live(np.ones(len(one.query.states), np.bool_)))


def test_partitions_are_judged_without_those_around_where_that_makes_too_many_states() -> None:
    pattern = parse_pattern("PATTERN p EVENT AND(A|B a, E c, E d, E e)")
    together, apart = build_query(pattern, max_terms=0), build_query(pattern, max_terms=0, max_states=15)
    assert [len(term.atoms) for term in together.terms] == [3, 4, 4]
    assert [len(term.atoms) for term in apart.terms] == [3, 1, 1]
    with pytest.raises(PatternRefused, match="parallel branches make more than 5 states") as caught:
        build_query(pattern, max_terms=0, max_states=5)
    assert caught.value.reason == "too-large"


def test_what_is_only_jointly_impossible_stays_alive_under_partitions() -> None:
    known = constraints_of("exclusive(B, D)", "exclusive(A, X)", "exclusive(C, Y)")
    tree: Tree = ("AND", ("OR", "A", "B"), ("OR", "C", "D"))
    terms, partitions = views(query_of(tree))
    assert not live(known, frozenset("XY"), terms)[0]
    assert live(known, frozenset("XY"), partitions)[0]


def test_a_pattern_none_of_whose_alternatives_can_match_is_unsatisfiable_under_partitions() -> None:
    query = build_query(parse_pattern("PATTERN p EVENT SEQ(OR(A a, B b), C c)"), max_terms=0)
    assert check_query(query, constraints_of("prior(C, A)")).is_satisfiable
    check = check_query(query, constraints_of("prior(C, A)", "prior(C, B)"))
    assert [term.term for term in check.dead] == [1, 2]
    assert not check.is_satisfiable


@settings(max_examples=150, deadline=None)
@given(
    patterns(
        features=["or", "and", "optional", "kleene", "bounded", "types", "next", "any_type"], types=TYPES, max_atoms=4
    ),
    constraint_sets((*TYPES, "E")),
    st.frozensets(st.sampled_from((*TYPES, "E"))),
)
def test_partitions_call_no_state_dead_that_an_alternative_keeps_alive(
    pattern: object, known: ConstraintSet, seen: frozenset[str]
) -> None:
    terms, partitions = views(build_query(pattern))  # type: ignore[arg-type]
    for of_terms, of_partitions in zip(live(known, seen, terms), live(known, seen, partitions), strict=True):
        assert of_partitions or not of_terms


@settings(max_examples=100, deadline=None)
@given(
    patterns(features=["and", "optional", "kleene", "bounded", "next"], types=TYPES, max_atoms=4),
    constraint_sets((*TYPES, "E")),
    st.frozensets(st.sampled_from((*TYPES, "E"))),
)
def test_without_or_both_say_the_same(pattern: object, known: ConstraintSet, seen: frozenset[str]) -> None:
    terms, partitions = views(build_query(pattern))  # type: ignore[arg-type]
    assert live(known, seen, terms) == live(known, seen, partitions)
