"""What is impossible before the first event."""

from random import Random

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
    Rule,
    UnsatisfiablePattern,
    check_query,
    check_set,
    failing_conditions,
)
from constraints.remainder import single
from nfa import Symbol, build_query, parse_pattern
from tests.builders.constraints import compared, query_of
from tests.references.alive import alive


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
        "no trace has B and A in the order that the pattern requires, which clash with prior(A, B)"
    ]


def test_alternatives_have_reasons_of_their_own() -> None:
    constraint_set = ConstraintSet((Exclusive("A", "B"), Exclusive("C", "D")))
    check = check_query(query_of(("OR", ("SEQ", "A", "B"), ("SEQ", "C", "D"), ("SEQ", "A", "X", "B"))), constraint_set)
    first, second = Exclusive("A", "B"), Exclusive("C", "D")
    assert [term.constraints for term in check.dead] == [(first,), (second,), (first,)]


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


def test_a_pattern_that_only_a_not_makes_impossible_asks_for_a_violation() -> None:
    constraint_set = ConstraintSet((Require("A", "X"), Prior("A", "X")))
    check = check_query(query_of(("SEQ", "A a", "NOT X")), constraint_set)
    (dead,) = check.dead
    assert not check.is_satisfiable
    assert check.asks_for_violation
    assert (dead.forbidden, dead.constraints) == (("X",), (Require("A", "X"), Prior("A", "X")))
    assert dead.text == (
        "no trace has A a without X where the pattern forbids it, which clashes with require(A, X) and prior(A, X)"
    )
    with pytest.raises(UnsatisfiablePattern, match="register it with constraints: off") as caught:
        check.require_satisfiable()
    assert caught.value.details["is_violation"] is True


def test_a_not_that_the_constraints_allow_for_is_no_violation() -> None:
    for constraints in ((Require("A", "X"),), (Require("A", "X"), Prior("X", "A")), (Prior("A", "X"),)):
        check = check_query(query_of(("SEQ", "A", "NOT X")), ConstraintSet(constraints))
        assert (check.is_satisfiable, check.asks_for_violation) == (True, False)


def test_a_pattern_with_an_alternative_beyond_hope_still_asks_for_a_violation() -> None:
    constraints = (Require("A", "X"), Prior("A", "X"), Exclusive("B", "C"))
    tree = ("OR", ("SEQ", "A", "NOT X"), ("AND", "B", "C"))
    assert check_query(query_of(tree), ConstraintSet(constraints)).asks_for_violation
    hopeless = check_query(query_of(("AND", "B", "C")), ConstraintSet(constraints))
    assert (hopeless.is_satisfiable, hopeless.asks_for_violation) == (False, False)


def test_alternatives_that_clash_alike_are_explained_alike() -> None:
    tree = ("SEQ", "A", ("OR", "X1", "X2", "X3"), "B")
    check = check_query(query_of(tree), ConstraintSet((Exclusive("A", "B"), Exclusive("X2", "A"))))
    assert [term.text for term in check.dead] == ["A and B clash with exclusive(A, B)"] * 3


def test_rules_can_make_a_pattern_impossible() -> None:
    known = ConstraintSet.of([Rule("chain response", ("A", "B")), Rule("absence", ("C",), 2)])
    assert check_query(query_of(("SEQ", "A", "C")), known).is_satisfiable
    (dead,) = check_query(query_of(("SEQ", "C c", "C d")), known).dead
    assert dead.constraints == (Rule("absence", ("C",), 2),)
    assert dead.text == "absence(2, C) leaves no place for C c and C d"


def test_rules_can_contradict_each_other() -> None:
    with pytest.raises(ContradictoryConstraints) as caught:
        check_set(ConstraintSet.of([Rule("init", ("A",)), Rule("init", ("B",)), Rule("existence", ("C",), 2)]))
    assert caught.value.details == {"constraints": ["init(A)", "init(B)"]}


def test_symbols_of_one_type_in_a_cycle_are_one_event() -> None:
    dear, cheap = Symbol(compared("Q", ">", 5)), Symbol(compared("Q", "<", 9))
    symbols = {dear.name: dear, cheap.name: cheap}
    around = [Prior(dear.name, cheap.name), Prior(cheap.name, dear.name)]
    assert check_set(ConstraintSet.of(around, symbols=symbols)) == ()
    (cycle,) = check_set(
        ConstraintSet.of([*around[:1], Prior("Q", dear.name), Prior(cheap.name, "A"), Prior("A", "Q")])
    )
    assert cycle.kind == "prior-cycle"


@pytest.mark.slow
def test_two_hundred_symbols_that_contradict_each_other_are_checked_quickly() -> None:
    """Most types are impossible, and each has its reason."""
    random = Random(1)
    steps = [compared(f"T{number % 40}", ">", number) for number in range(200)]
    symbols = {symbol.name: symbol for symbol in map(Symbol, steps)}
    parts: list[Constraint] = []
    for _ in range(2_000):
        one, other = random.sample(sorted(symbols), 2)
        choices: list[Constraint] = [Prior(one, other), Prior(other, one), Require(one, other), Exclusive(one, other)]
        parts.append(random.choice(choices))
    known = ConstraintSet.of(parts, symbols=symbols)
    found = [warning.types[0] for warning in check_set(known) if warning.kind == "impossible-type"]
    assert len(found) > 150
    for name in found:
        assert not alive(known, frozenset(), single(name, symbols))
