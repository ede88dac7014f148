"""Constraints as values."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constraints import Clause, ConstraintSet, End, Exclusive, Part, Prior, Require, Rule, Settings, parse_constraints
from nfa import Atom, Symbol
from tests.builders.constraints import compared


@pytest.mark.parametrize(
    ("part", "printed"),
    [
        (Prior("A", "B"), "prior(A, B)"),
        (Exclusive("A", "B"), "exclusive(A, B)"),
        (Require("A", "B"), "require(A, B)"),
        (End("F"), "end(F)"),
        (Clause(frozenset(), "A"), "existence(A)"),
        (Clause(frozenset({"A"}), None), "absence(A)"),
        (Clause(frozenset({"B", "A"}), "K"), "implication(A, B, K)"),
        (Clause(frozenset({"C", "A", "B"}), None), "not_together(A, B, C)"),
        (Prior("com.acme.Order", "send quote"), "prior(com.acme.Order, `send quote`)"),
        (Prior("a`b", "Käse"), "prior(`a``b`, `Käse`)"),
        (End("1st"), "end(`1st`)"),
    ],
)
def test_prints_in_the_form_it_is_accepted_in(part: Part, printed: str) -> None:
    assert str(part) == printed
    assert parse_constraints([printed]).constraint_set == ConstraintSet.of([part])


@given(st.text(min_size=1, max_size=8).filter(lambda name: name.strip() and not _has_surrogates(name)))
def test_every_name_survives_printing(name: str) -> None:
    assert parse_constraints([str(Prior(name, "B"))]).constraint_set.constraints == (Prior(name, "B"),)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def test_exclusive_is_symmetric() -> None:
    assert Exclusive("B", "A") == Exclusive("A", "B")
    assert ConstraintSet((Exclusive("B", "A"), Exclusive("A", "B"))).constraints == (Exclusive("A", "B"),)


def test_short_clauses_are_the_everyday_constraints() -> None:
    assert Exclusive("A", "B").clause == Clause(frozenset({"A", "B"}), None)
    assert Require("A", "B").clause == Clause(frozenset({"A"}), "B")
    assert str(Clause(frozenset({"A"}), "B")) == "require(A, B)"
    assert [clause.is_long for clause in ConstraintSet((Exclusive("A", "B"), Require("A", "B"))).clauses] == [
        False,
        False,
    ]
    assert Clause(frozenset({"A", "B"}), "C").is_long
    assert Clause(frozenset({"A", "B", "C"}), None).is_long


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clause(frozenset(), None), "always false"),
        (lambda: Clause(frozenset("AB"), "A"), "is always true"),
        (lambda: Require("A", "A"), "is always true"),
        (lambda: Exclusive("A", "A"), "cannot exclude itself"),
    ],
)
def test_empty_words_are_refused(make: Callable[[], Part], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_set_holds_short_clauses_under_their_everyday_names() -> None:
    clauses = (Clause(frozenset("AB"), None), Clause(frozenset("A"), "B"), Clause(frozenset("A"), None))
    assert ConstraintSet(clauses).constraints == (Exclusive("A", "B"), Require("A", "B"), clauses[2])


def test_an_end_event_comes_after_everything() -> None:
    constraint_set = ConstraintSet((Prior("A", "B"),), frozenset({"F"}))
    assert constraint_set.comes_before("A", "B")
    assert not constraint_set.comes_before("B", "A")
    assert all(constraint_set.comes_before(name, "F") for name in ("A", "B", "F", "unknown"))
    assert constraint_set.blocks({"F"}, "unknown")
    assert not constraint_set.blocks({"A"}, "unknown")
    assert constraint_set.types == {"A", "B", "F"}


def test_parts_and_back() -> None:
    constraint_set = ConstraintSet((Require("A", "B"), Prior("A", "B")), frozenset({"G", "F"}))
    assert constraint_set.parts == (End("F"), End("G"), Require("A", "B"), Prior("A", "B"))
    assert ConstraintSet.of(constraint_set.parts) == constraint_set


def test_horn_closure_is_the_least_model() -> None:
    clauses = (Require("A", "B"), Clause(frozenset({"B", "C"}), "D"), Clause(frozenset(), "E"), Require("X", "Y"))
    constraint_set = ConstraintSet(clauses)
    assert constraint_set.horn_closure({"A"}) == {"A", "B", "E"}
    assert constraint_set.horn_closure({"A", "C"}) == {"A", "B", "C", "D", "E"}


def test_rules_are_parts_of_their_own() -> None:
    rules = Rule("response", ("A", "send quote")), Rule("existence", ("A",), 3)
    known = ConstraintSet.of([rules[0], Prior("A", "B"), rules[1], rules[0], End("F")])
    assert known.rules == rules
    assert [str(part) for part in known.parts] == [
        "end(F)",
        "prior(A, B)",
        "response(A, `send quote`)",
        "existence(3, A)",
    ]
    assert known.types == {"A", "B", "F", "send quote"}
    assert ConstraintSet.of(known.parts) == known
    assert known != ConstraintSet.of(known.parts[:-1])


DEAR, DEARER, CHEAP = Symbol(compared("Q", ">", 5)), Symbol(compared("Q", ">", 7)), Symbol(compared("Q", "<", 2))
SYMBOLS = {symbol.name: symbol for symbol in (DEAR, DEARER, CHEAP)}


def test_symbols_imply_their_type_and_wider_symbols() -> None:
    known = ConstraintSet.of([Prior(DEAR.name, "A"), Exclusive(DEARER.name, CHEAP.name)], symbols=SYMBOLS)
    assert known.names == {"A", *SYMBOLS}
    assert known.types == {"A", "Q"}
    assert known.implied == {
        DEAR.name: {"Q"},
        DEARER.name: {"Q", DEAR.name},
        CHEAP.name: {"Q"},
    }
    assert known.shown_with({DEARER.name, "A"}) == {"A", "Q", DEAR.name, DEARER.name}
    assert known.horn_closure({DEARER.name}) == {"Q", DEAR.name, DEARER.name}
    assert (known.type_of(DEAR.name), known.type_of("A")) == ("Q", "A")
    assert known.shown_by(compared("Q", ">", 6)) == {"Q", DEAR.name}
    assert known.shown_by(compared("Q", "<", 1)) == {"Q", CHEAP.name}
    assert known.shown_by(Atom(("Q",), "q")) == {"Q"}
    assert known.shown_by(Atom(("Q", "R"), "q")) == known.shown_by(Atom(("_",), "q")) == frozenset()


def test_a_set_keeps_the_symbols_that_it_names() -> None:
    known = ConstraintSet.of([Prior(DEAR.name, "A"), Rule("init", (CHEAP.name,))], symbols=SYMBOLS)
    assert known.symbols == {DEAR.name: DEAR, CHEAP.name: CHEAP}
    assert known.of_parts([Prior(DEAR.name, "A")]).symbols == {DEAR.name: DEAR}
    assert known == ConstraintSet.of(known.parts, symbols={CHEAP.name: CHEAP, DEAR.name: DEAR})
    assert hash(known) == hash(ConstraintSet.of(known.parts, symbols=SYMBOLS))


def test_settings_belong_to_the_set() -> None:
    stopping = Settings(completion="not_assumed", frequencies={"A": 0.5})
    known = ConstraintSet.of([Require("A", "B"), Exclusive("A", "C"), Clause(frozenset(), "D")], settings=stopping)
    assert known.clauses == (Clause(frozenset("AC"), None),)
    assert known.horn_closure({"A"}) == {"A"}
    assert known.is_ruled_out(frozenset("AC"))
    assert known.constraints[0] == Require("A", "B")
    assert known != ConstraintSet.of(known.parts)
    assert known.of_parts(known.parts) == known
    assert hash(stopping) == hash(Settings(completion="not_assumed", frequencies={"A": 0.5}))
