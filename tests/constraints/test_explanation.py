"""Why an event ended a partial match."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import (
    ConstraintSet,
    End,
    Exclusive,
    Explanation,
    Monitor,
    alive,
    explain_ending,
    parse_constraints,
    remainder_of,
)
from constraints.testing import Tree, constraint_sets, queries, query_of
from nfa import PatternState, Query

QUOTE: Tree = ("SEQ", "O o", "Q q", "F f")


def explain(constraints: list[str], tree: Tree, bound: set[int], before: str, event_type: str) -> Explanation:
    constraint_set = parse_constraints(constraints).constraint_set
    seen = frozenset(before.split())
    state = PatternState(0, frozenset(bound))
    return explain_ending(constraint_set, query_of(tree), state, seen, seen | {event_type}, event_type)


def test_p1_says_that_its_time_has_passed() -> None:
    found = explain(["prior(Q, S)"], QUOTE, {0}, "O", "S")
    assert (found.form, found.event_type, found.earlier) == ("p1", "S", ())
    assert [str(part) for part in found.constraints] == ["prior(Q, S)"]
    assert found.atom.alias == "q"
    assert found.text == "S ends it: prior(Q, S) means that Q q can no longer come"


def test_p1_at_most_once() -> None:
    found = explain(["prior(Q, Q)"], QUOTE, {0}, "O", "Q")
    assert found.form == "p1"
    assert found.text == "Q ends it: prior(Q, Q) allows only one Q, so Q q can no longer come"


def test_p2_says_what_is_excluded() -> None:
    found = explain(
        ["exclusive(UseLocalStock, UseRemoteStock)"], ("SEQ", "A", "UseRemoteStock u"), {0}, "A", "UseLocalStock"
    )
    assert found.form == "p2"
    assert found.text == (
        "UseLocalStock ends it: exclusive(UseLocalStock, UseRemoteStock) means that UseRemoteStock u can no longer come"
    )


def test_p2_through_what_the_event_requires() -> None:
    found = explain(["require(E, K)", "exclusive(K, M)"], ("SEQ", "X", "M m"), {0}, "X", "E")
    assert found.form == "p2"
    assert found.text == "E ends it: require(E, K) and exclusive(K, M) mean that M m can no longer come"


def test_p3_names_what_is_missing() -> None:
    found = explain(["require(A, K1)", "require(K1, K2)", "prior(K2, Z)"], ("SEQ", "X", "A a"), {0}, "X", "Z")
    assert found.form == "p3"
    assert found.text == (
        "Z ends it: A a needs K2 by require(A, K1) and require(K1, K2), and by prior(K2, Z) K2 can no longer come"
    )


def test_p4_names_the_atoms_that_cannot_be_ordered() -> None:
    found = explain(["prior(A, B)", "prior(B, C)", "require(E, B)"], ("SEQ", "C c", "A a"), set(), "", "E")
    assert found.form == "p4"
    assert [atom.alias for atom in found.atoms] == ["c", "a"]
    assert found.text == "E ends it: require(E, B), prior(A, B) and prior(B, C) leave no order for C c and A a"


def test_p4_with_two_events() -> None:
    constraints = ["require(E1, U1)", "require(E2, U2)", "prior(B, U1)", "prior(U1, U2)", "prior(U2, A)"]
    found = explain(constraints, ("SEQ", "A", "B"), set(), "E1", "E2")
    assert (found.form, found.earlier) == ("p4", ("E1",))
    assert found.text.startswith("E2 ends it, after E1: require(E1, U1), require(E2, U2), ")


def test_p4_with_one_atom() -> None:
    constraints = ["require(A, M)", "require(E, U)", "require(E, V)", "prior(M, U)", "prior(U, V)", "prior(V, M)"]
    found = explain(constraints, ("SEQ", "X", "A a"), {0}, "", "E")
    assert found.form == "p4"
    assert found.text.endswith("leave no place for A a")


def test_p5_with_an_earlier_event() -> None:
    found = explain(["not_together(A, B, C)"], ("SEQ", "X", "C c"), {0}, "X A", "B")
    assert found.form == "p5"
    assert found.text == "B ends it, after A: not_together(A, B, C) means that C c can no longer come"


def test_p5_rules_out_two_atoms_together() -> None:
    found = explain(["not_together(E, B, C)"], ("AND", "B b", "C c"), set(), "", "E")
    assert found.form == "p5"
    assert found.text == "E ends it: not_together(B, C, E) means that B b and C c can no longer both come"


def test_p5_with_three_atoms() -> None:
    found = explain(["not_together(E, A, B, C)"], ("AND", "A", "B", "C"), set(), "", "E")
    assert found.text == "E ends it: not_together(A, B, C, E) means that A, B and C can no longer all come"


def test_an_end_event_ends_everything() -> None:
    found = explain(["end(Fin)"], QUOTE, {0}, "", "Fin")
    assert (found.form, found.constraints) == ("end", (End("Fin"),))
    assert found.text == "Fin ends it: the trace is over, and Q q has not come"


def test_an_end_event_that_may_have_completed_a_match_leaves_no_room_for_another() -> None:
    found = explain(["end(Fin)"], ("SEQ", "A", "Fin f"), {0}, "A", "Fin")
    assert found.text == "Fin ends it: the trace is over, so no other Fin f can come"


def test_odd_names_are_quoted() -> None:
    found = explain(["exclusive(`go home`, U)"], ("SEQ", "A", "U u"), {0}, "A", "go home")
    assert found.text == "`go home` ends it: exclusive(U, `go home`) means that U u can no longer come"


@pytest.mark.parametrize(("before", "event_type"), [("O", "X"), ("O S", "X")])
def test_an_event_that_ended_nothing_is_a_mistake_of_the_caller(before: str, event_type: str) -> None:
    with pytest.raises(ValueError, match="did not end"):
        explain(["prior(Q, S)"], QUOTE, {0}, before, event_type)


@settings(max_examples=200)
@given(constraint_sets("ABCDE", max_size=10), queries("ABCDE"), st.permutations("ABCDE"))
def test_each_ending_of_a_trace_is_explained_by_its_event(
    constraint_set: ConstraintSet, query: Query, trace: list[str]
) -> None:
    monitor = Monitor(constraint_set)
    seen: frozenset[str] = frozenset()
    for event_type in trace if alive(constraint_set, seen) else []:
        after = monitor.step(seen, event_type)
        if after is None:
            return
        ended = monitor.live(seen, query) & ~monitor.live(after, query)
        for state in (state for state, is_ended in zip(query.states, ended, strict=True) if is_ended):
            found = explain_ending(constraint_set, query, state, seen, after, event_type)
            core = ConstraintSet.of(found.constraints)
            remainder = remainder_of(query, state).restricted_to(found.atoms)
            assert alive(core, seen, remainder)
            assert not alive(core, after, remainder)
            assert set(found.earlier) <= seen
            assert found.atom in remainder.atoms
        seen = after


def test_forms_follow_the_shape_of_the_chain() -> None:
    constraint_set = ConstraintSet((Exclusive("L", "U"),), frozenset("L"))
    query = query_of(("SEQ", "A", "U"))
    found = explain_ending(constraint_set, query, query.states[1], frozenset(), frozenset("L"), "L")
    assert found.form == "end"
