"""What is impossible before the first event."""

import pytest

from constraints import (
    Clause,
    Constraint,
    ConstraintSet,
    ContradictoryConstraints,
    Exclusive,
    Prior,
    QueryCheck,
    Require,
    UnsatisfiablePattern,
    check_query,
    check_set,
    failing_conditions,
)
from constraints.testing import query_of
from nfa import build_query, parse_pattern


def test_a_joint_clash_names_atoms_and_constraints() -> None:
    constraint_set = ConstraintSet((Prior("A", "M"), Require("A", "K"), Exclusive("K", "M"), Exclusive("A", "Y")))
    check = check_query(query_of(("AND", "A a", "M m", "X")), constraint_set)
    (dead,) = check.dead
    assert not check.is_satisfiable
    assert [atom.alias for atom in dead.atoms] == ["a", "m"]
    assert dead.constraints == (Require("A", "K"), Exclusive("K", "M"))
    assert dead.text == "A a and M m clash with require(A, K) and exclusive(K, M)"
    with pytest.raises(UnsatisfiablePattern) as caught:
        check.require_satisfiable()
    assert caught.value.message == f"the pattern can never match: {dead.text}"
    assert caught.value.details == {
        "terms": [
            {"atoms": ["a", "m"], "constraints": ["require(A, K)", "exclusive(K, M)"], "reason": dead.text},
        ]
    }


def test_an_order_that_cannot_be_kept() -> None:
    check = check_query(query_of(("SEQ", "X", "B", "A")), ConstraintSet((Prior("A", "B"),)))
    assert [term.text for term in check.dead] == [
        "no trace has B and A in the order that the pattern asks for, which clash with prior(A, B)"
    ]


def test_a_type_that_never_occurs() -> None:
    check = check_query(query_of(("SEQ", "X", "A")), ConstraintSet((Clause(frozenset("A"), None),)))
    assert [term.text for term in check.dead] == ["A clashes with absence(A)"]


def test_live_alternatives_keep_a_pattern() -> None:
    check = check_query(query_of(("SEQ", ("OR", "A", "B"), "C")), ConstraintSet((Exclusive("A", "C"),)))
    assert check.is_satisfiable
    assert [term.term for term in check.dead] == [0]
    check.require_satisfiable()


def test_nothing_is_dead_without_constraints() -> None:
    assert check_query(query_of(("AND", "A", "A")), ConstraintSet()).dead == ()


def test_the_end_event_comes_last_in_a_pattern() -> None:
    constraint_set = ConstraintSet(end_events=frozenset("F"))
    assert check_query(query_of(("SEQ", "X", "F")), constraint_set).is_satisfiable
    assert not check_query(query_of(("SEQ", "F", "X")), constraint_set).is_satisfiable


def test_contradictory_constraints_are_refused_with_the_clash() -> None:
    always_a, always_b = Clause(frozenset(), "A"), Clause(frozenset(), "B")
    with pytest.raises(ContradictoryConstraints) as caught:
        check_set(ConstraintSet((Require("A", "X"), always_a, always_b, Exclusive("A", "B"), Prior("A", "B"))))
    assert caught.value.details == {"constraints": ["existence(A)", "existence(B)", "exclusive(A, B)"]}
    assert caught.value.message == (
        "no trace can keep existence(A), existence(B) and exclusive(A, B) together; leave out any one of them"
    )


def warnings_of(*constraints: Constraint, ends: str = "") -> list[tuple[str, tuple[str, ...], str]]:
    found = check_set(ConstraintSet(constraints, frozenset(ends)))
    return [(warning.kind, warning.types, warning.text) for warning in found]


def test_a_type_that_contradicts_itself_is_a_warning() -> None:
    assert warnings_of(Require("A", "B"), Exclusive("A", "B")) == [
        ("impossible-type", ("A",), "A can never occur, because of require(A, B) and exclusive(A, B)")
    ]


def test_a_cycle_of_priors_is_a_warning_with_the_cycle_named() -> None:
    assert warnings_of(Prior("B", "C"), Prior("A", "B"), Prior("C", "A"), Prior("A", "A"), Prior("D", "A")) == [
        (
            "prior-cycle",
            ("A", "B", "C"),
            "A, B and C cannot all occur in one trace, because of the cycle prior(A, B), prior(B, C) and prior(C, A)",
        )
    ]


def test_each_type_gets_its_shortest_cycle() -> None:
    cycles = [types for _, types, _ in warnings_of(Prior("A", "B"), Prior("B", "A"), Prior("B", "C"), Prior("C", "B"))]
    assert cycles == [("A", "B"), ("B", "C")]


def test_a_cycle_that_an_exclusion_explains_is_no_news() -> None:
    assert warnings_of(Prior("A", "B"), Prior("B", "A"), Exclusive("A", "B")) == []
    assert warnings_of(ends="FG") == []


def test_what_must_come_after_an_end_event_is_apart_from_it() -> None:
    assert warnings_of(Prior("F", "A"), ends="F") == [
        (
            "prior-cycle",
            ("A", "F"),
            "A and F cannot all occur in one trace, because of the cycle end(F) and prior(F, A)",
        )
    ]


def test_a_large_set_is_checked_quickly() -> None:
    """Two thousand constraints over two hundred types, with one type that contradicts itself."""
    names = [f"T{number}" for number in range(200)]
    constraints: list[Constraint] = [Prior(names[i], names[i + j]) for j in range(1, 6) for i in range(200 - j)]
    constraints += [Require(names[i], names[i - j]) for j in range(1, 6) for i in range(j, 200)]
    constraints.append(Exclusive("T0", "T199"))
    assert [types for _, types, _ in warnings_of(*constraints)] == [("T199",)]


def test_a_pattern_that_needs_no_event_can_always_match() -> None:
    query = build_query(parse_pattern("PATTERN p EVENT A* a"))
    constraint_set = ConstraintSet.of([Clause(frozenset({"A"}), None)])
    assert query.terms[0].atoms == ()
    assert check_query(query, constraint_set) == QueryCheck(dead=(), is_satisfiable=True)
    assert failing_conditions(query, constraint_set) == ()


def test_only_what_a_match_must_have_counts() -> None:
    query = build_query(parse_pattern("PATTERN p EVENT SEQ(A a, B? b, NOT C, D|E x)"))
    constraint_set = ConstraintSet.of([Clause(frozenset({"B"}), None), Exclusive("A", "D")])
    verdict = check_query(query, constraint_set)
    assert verdict.is_satisfiable
    assert [term.text for term in verdict.dead] == ["A a and D x clash with exclusive(A, D)"]
