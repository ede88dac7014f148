"""Static analysis: dead patterns and alternatives, redundant atoms, idle constraints, expected endings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from constraints import (
    ConstraintSet,
    Exclusive,
    Monitor,
    Part,
    Prior,
    Require,
    Rule,
    Settings,
    analyse,
    failing_conditions,
    parse_constraints,
)
from constraints.analysing.forecast import forecast
from constraints.analysing.profit import idle_parts
from constraints.analysing.redundancy import redundant_atoms
from constraints.remainder import Remainder
from nfa import EventClass, MonitorState, Query, build_query, parse_pattern
from tests.builders.constraints import conforms, constraint_sets, occurs_in, queries, query_of, words

TYPES = ("A", "B", "C", "D")


def constraints_of(*entries: str) -> ConstraintSet:
    return parse_constraints(list(entries)).constraint_set


def query(event: str) -> Query:
    return build_query(parse_pattern(f"PATTERN p EVENT {event}"))


def test_a_pattern_that_can_never_match_is_named_with_the_reason() -> None:
    found = analyse(constraints_of("exclusive(A, B)"), [query_of(("SEQ", "A", "B"), "both")])
    assert not found.patterns[0].can_match
    assert [term.text for term in found.patterns[0].dead] == ["A and B clash with exclusive(A, B)"]


def test_dead_alternatives_are_named() -> None:
    found = analyse(constraints_of("exclusive(A, B)"), [query_of(("SEQ", "A", ("OR", "B", "C")), "some")])
    (pattern,) = found.patterns
    assert pattern.can_match
    assert [term.term for term in pattern.dead] == [0]
    assert [term.text for term in pattern.dead] == ["A and B clash with exclusive(A, B)"]
    assert {state.state.term for state in pattern.states} == {1}


SURE = ("require(C, B)", "prior(A, B)", "prior(B, C)")


def redundant(event: str, *entries: str) -> list[str]:
    return [found.atom.alias for found in redundant_atoms(query(event), constraints_of(*(entries or SURE)))]


def test_an_atom_is_redundant_where_it_is_required_and_its_place_is_fixed() -> None:
    assert redundant("SEQ(A a, B b, C c)") == ["b"]
    assert redundant("SEQ(A a, B b, C c) WITHIN 5 s") == ["b"]
    assert redundant("AND(B b, C c)") == ["b"]
    assert redundant("SEQ(B b, C c)") == ["b"]
    assert redundant("OR(SEQ(A a, B b, C c), SEQ(B d, A e))") == ["b"]
    (found,) = redundant_atoms(query("SEQ(A a, B b, C c)"), constraints_of(*SURE))
    assert found.text == "every conforming trace that has the rest has B b too, in its place"
    (found,) = redundant_atoms(query("OR(SEQ(A a, B b, C c), SEQ(B d, A e))"), constraints_of(*SURE))
    assert found.text.startswith("every conforming trace that has the rest of alternative 1 of 2 has B b too")


@pytest.mark.parametrize(
    "event",
    [
        "SEQ(A a, B b)",  # nothing requires it
        "SEQ(A a, B b [v > 1], C c)",
        "SEQ(A a, B b, C c [v > b.v])",
        "SEQ(A a, B b, C c) WHERE c.v > b.v",
        "SEQ(A a, B b, B d, C c)",  # one B may be all there is
        "SEQ(C c, B b)",  # it comes, but not there
        "SEQ(B b, C c) WITHIN 5 s",  # it may come too early
        "SEQ(A a, NEXT B b, C c)",
        "SEQ(A a, B b, C c) SELECT NEXT",
        "SEQ(A a, NOT X, B b, C c)",
        "SEQ(A a, B+ b, C c)",
        "SEQ(A a, SEQ(B b, C c) WITHIN 5 s)",
    ],
)
def test_an_atom_is_not_called_redundant_where_that_is_not_sure(event: str) -> None:
    assert "b" not in redundant(event)


def test_what_is_required_is_not_redundant_if_its_order_is_free() -> None:
    assert redundant("SEQ(A a, B b, C c)", "require(C, B)", "prior(A, B)") == []
    assert redundant("SEQ(A a, B b, C c)", "require(C, B)", "prior(B, C)") == []
    assert redundant("AND(B b, C c)", "require(C, B)") == ["b"]


def test_nothing_is_required_where_traces_may_stop() -> None:
    known = ConstraintSet.of(constraints_of(*SURE).parts, settings=Settings(completion="not_assumed"))
    assert redundant_atoms(query("SEQ(A a, B b, C c)"), known) == ()


@settings(max_examples=150, deadline=None)
@given(constraint_sets(TYPES, max_size=9), queries(TYPES, max_atoms=3))
def test_without_a_redundant_atom_the_same_traces_match(known: ConstraintSet, query: Query) -> None:
    for found in redundant_atoms(query, known):
        term = query.terms[found.term]
        whole = Remainder(term.atoms, term.before)
        rest = whole.only(frozenset(range(len(term.atoms))) - {found.index})
        for word in words(TYPES, 4):
            if conforms(known, word):
                assert occurs_in(rest, word) == occurs_in(whole, word), (found.text, word)


def rows(known: ConstraintSet, patterns: list[Query], paths: list[tuple[str, ...]]) -> list[list[bool]]:
    monitor = Monitor(known)
    found = []
    for path in paths:
        state = monitor.start
        for name in path:
            after = monitor.step(state, EventClass(type=name))
            assert after is not None
            state = after
        found.append([bool(alive) for one in patterns for alive in monitor.live(state, one)])
    return found


def paths_of(known: ConstraintSet) -> list[tuple[str, ...]]:
    monitor = Monitor(known)
    found: dict[MonitorState, tuple[str, ...]] = {monitor.start: ()}
    waiting = [monitor.start]
    for state in waiting:
        for name in TYPES:
            after = monitor.step(state, EventClass(type=name))
            if after is not None and after not in found:
                found[after] = (*found[state], name)
                waiting.append(after)
    return list(found.values())


def idle_by_definition(known: ConstraintSet, patterns: list[Query]) -> list[Part]:
    paths = paths_of(known)
    whole = rows(known, patterns, paths)
    return [
        part
        for part in known.parts
        if rows(known.of_parts(other for other in known.parts if other != part), patterns, paths) == whole
    ]


@settings(max_examples=80, deadline=None)
@given(constraint_sets(TYPES, max_size=7), queries(TYPES, max_atoms=3), queries(TYPES, max_atoms=2))
def test_idle_are_those_without_which_nothing_lives_longer(known: ConstraintSet, one: Query, other: Query) -> None:
    found = idle_parts(known, [one, other], state_limit=1_000)
    assert found.is_complete
    assert list(found.parts) == idle_by_definition(known, [one, other])


@pytest.mark.parametrize(
    ("entries", "rules", "event"),
    [
        (("exclusive(B, D)", "exclusive(X, Y)"), (), "SEQ(A a, B b)"),
        (("exclusive(A, B)",), (Rule("precedence", ("A", "B")),), "SEQ(B b, C c)"),
        (("prior(A, B)",), (Rule("not chain succession", ("A", "B")), Rule("absence", ("C",), 2)), "SEQ(C x, C y)"),
        (("exclusive(C, D)",), (), "SEQ(A a, NOT C, B b)"),
        (("require(A, C)", "prior(C, B)"), (), "SEQ(A a, B b, NOT C)"),
    ],
)
def test_idle_with_rules_and_nots(entries: tuple[str, ...], rules: tuple[Rule, ...], event: str) -> None:
    known = ConstraintSet.of([*constraints_of(*entries).parts, *rules])
    found = idle_parts(known, [query(event)], state_limit=1_000)
    assert found.is_complete
    assert list(found.parts) == idle_by_definition(known, [query(event)])


def test_where_not_all_states_are_visited_that_is_said() -> None:
    known = ConstraintSet(tuple(Exclusive(f"X{number}", f"Y{number}") for number in range(8)))
    found = analyse(known, [query_of(("SEQ", "A", "X0"))], state_limit=20)
    assert not found.idle.is_complete
    assert found.idle.visited == 20
    assert found.idle.parts[-1] == Exclusive("X7", "Y7")
    assert Exclusive("X0", "Y0") not in found.idle.parts


def forecasts(known: ConstraintSet, asked: Query) -> dict[str, tuple[object, list[tuple[str, object, object]]]]:
    found = forecast(asked, known, failing_conditions(asked, known))
    return {
        " ".join(atom.alias for atom in state.bound): (
            pytest.approx(state.probability),
            [(one.condition.event_type, one.probability, one.first) for one in state.endings],
        )
        for state in found
    }


def test_a_forecast_says_how_often_and_by_what_matches_end() -> None:
    known = ConstraintSet.of(
        [Exclusive("L", "U"), Prior("U", "S"), Prior("L", "S")],
        settings=Settings(frequencies={"L": 0.6, "S": 0.5}),
    )
    assert forecasts(known, query_of(("SEQ", "A", "U")))["A"] == (
        0.8,
        [("L", 0.6, 0.6), ("S", 0.5, pytest.approx(0.2))],
    )
    (_, state) = analyse(known, [query_of(("SEQ", "A", "U"))]).patterns[0].states
    assert state.text == "with A bound, it is terminated early in 80% of the traces, by L (60%), S (50%)"
    assert state.earliest is not None
    assert state.earliest.condition.event_type == "L"


def test_what_the_bound_events_require_is_certain_to_come() -> None:
    known = ConstraintSet.of([Require("A", "S"), Prior("U", "S")])
    assert forecasts(known, query_of(("SEQ", "A", "U")))["A"] == (1, [("S", 1.0, 1.0)])


def test_a_state_that_nothing_ends_says_so() -> None:
    (_, state) = analyse(constraints_of("exclusive(X, Y)"), [query_of(("SEQ", "A", "B"))]).patterns[0].states
    assert state.text == "with A bound, nothing ends the partial match before the trace ends"
    assert state.earliest is None
