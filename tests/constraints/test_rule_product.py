"""All rules of a set at once, against every short word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import NOTHING, ConstraintSet, Prior, Remainder, Rule, parse_constraints, remainder_of
from constraints.rules.automaton import RuleAutomaton
from constraints.rules.product import RuleProduct
from nfa import Symbol, parse_step
from tests.builders.constraints import Tree, occurs_in, query_of

TYPES = ["A", "B", "C", "Other"]
LONGEST = 6
TREES: list[Tree] = [
    ("SEQ", "A", "B"),
    ("SEQ", "B", "A"),
    ("AND", "A", "A"),
    ("AND", "A", "C"),
    "B",
    ("SEQ", "A", "NOT B", "C"),
    ("SEQ", "A", "NOT B"),
    ("SEQ", "NOT C", "B"),
    ("SEQ", "A", "NOT A", "A"),
    ("AND", ("SEQ", "A", "NOT C", "B"), "C"),
]
REMAINDERS = [NOTHING] + [
    remainder_of(query, state) for query in map(query_of, TREES) for state in query.states if len(state.bound) < 3
]


def rule(kind: str, *names: str, count: int | None = None) -> Rule:
    return Rule(kind, names, count)


RULES = [
    rule("existence", "A", count=2),
    rule("absence", "A", count=3),
    rule("exactly", "A", count=2),
    *(rule(kind, name) for kind in ("init", "last") for name in "AB"),
    *(
        rule(kind, first, second)
        for kind in (
            "choice",
            "exclusive choice",
            "response",
            "precedence",
            "succession",
            "alternate response",
            "alternate precedence",
            "chain response",
            "chain precedence",
            "chain succession",
            "not chain succession",
        )
        for first, second in ("AB", "BA", "BC")
    ),
]
some_rules = st.lists(st.sampled_from(RULES), min_size=1, max_size=2, unique=True).map(tuple)
some_impossible = st.frozensets(st.sampled_from(["A", "B", "C"]), max_size=2)
prefixes = st.lists(st.sampled_from(TYPES), max_size=3)


def oracle(
    rules: Sequence[Rule],
    prefix: Sequence[str],
    remainder: Remainder,
    impossible: frozenset[str] | None,
    is_ended: bool,
) -> bool:
    """Every continuation of up to ``LONGEST`` events, which two rules and two atoms never need more of.

    The automata themselves are tested against formulas.
    """
    automata = [RuleAutomaton.of(one) for one in rules]
    wanted = [one.accepting if is_ended else one.places - one.traps for one in automata]

    def stepped(places: Sequence[int], name: str) -> list[int]:
        return [one.step(place, frozenset([name])) for one, place in zip(automata, places, strict=True)]

    usable = [] if impossible is None else [name for name in TYPES if name not in impossible]
    level: list[tuple[tuple[str, ...], list[int]]] = [((), reduce(stepped, prefix, [one.start for one in automata]))]
    for _ in range(LONGEST + 1):
        for word, places in level:
            is_kept = all(place in good for place, good in zip(places, wanted, strict=True))
            if is_kept and occurs_in(remainder, word):
                return True
        level = [((*word, name), stepped(places, name)) for word, places in level for name in usable]
    return False


def after(rules: RuleProduct, prefix: Sequence[str]) -> tuple[int, ...]:
    places = rules.start
    for name in prefix:
        places = rules.step(places, frozenset([name]))
    return places


@settings(max_examples=150)
@given(some_rules, prefixes, st.sampled_from(REMAINDERS), some_impossible | st.none())
def test_what_can_complete_is_found_exactly(
    rules: tuple[Rule, ...], prefix: list[str], remainder: Remainder, impossible: frozenset[str] | None
) -> None:
    together = RuleProduct(ConstraintSet(rules=rules), max_steps=10**9)
    places = after(together, prefix)
    found = together.can_complete(places, remainder, impossible, assumes_completion=True)
    assert found == oracle(rules, prefix, remainder, impossible, is_ended=True)
    assert together.given_up == 0


@settings(max_examples=25)
@given(some_rules, prefixes, st.sampled_from(REMAINDERS), some_impossible)
def test_where_traces_may_just_stop_only_traps_count(
    rules: tuple[Rule, ...], prefix: list[str], remainder: Remainder, impossible: frozenset[str]
) -> None:
    together = RuleProduct(ConstraintSet(rules=rules), max_steps=10**9)
    places = after(together, prefix)
    found = together.can_complete(places, remainder, impossible, assumes_completion=False)
    assert found == oracle(rules, prefix, remainder, impossible, is_ended=False)


@settings(max_examples=60)
@given(some_rules, prefixes, st.sampled_from(REMAINDERS), some_impossible, st.integers(0, 200))
def test_a_search_that_is_given_up_says_that_it_can(
    rules: tuple[Rule, ...], prefix: list[str], remainder: Remainder, impossible: frozenset[str], max_steps: int
) -> None:
    exact = RuleProduct(ConstraintSet(rules=rules), max_steps=10**9)
    hasty = RuleProduct(ConstraintSet(rules=rules), max_steps=max_steps, memory_limit=2)
    places = after(exact, prefix)
    assert hasty.can_complete(places, remainder, impossible, assumes_completion=True) or not exact.can_complete(
        places, remainder, impossible, assumes_completion=True
    )


def test_giving_up_is_counted() -> None:
    constraint_set = ConstraintSet(rules=(rule("existence", "A", count=90), rule("last", "B")))
    hasty = RuleProduct(constraint_set, max_steps=10)
    assert hasty.can_complete(hasty.start, NOTHING, frozenset(), assumes_completion=True)
    assert hasty.given_up > 0


def test_no_more_answers_are_kept_than_the_limit() -> None:
    product = RuleProduct(ConstraintSet(rules=(rule("existence", "A", count=1),)), max_steps=10**9, memory_limit=2)
    for impossible in ("", "A", "B", "AB", "C"):
        product.can_complete(product.start, NOTHING, frozenset(impossible), assumes_completion=True)
        assert len(vars(product)["_answers"]) <= 2


def test_places_mean_the_same_wherever_the_set_is_loaded() -> None:
    document = ["response(A, B)", "init(A)", "existence(3, C)"]
    first, second = (RuleProduct(parse_constraints(document).constraint_set) for _ in range(2))
    assert after(first, "ACAB") == after(second, "ACAB")
    assert first.step(first.start, frozenset(["Other"])) == (
        0,
        RuleAutomaton.of(rule("init", "A")).step(0, frozenset()),
        0,
    )


def test_no_rules_no_places() -> None:
    nothing = RuleProduct(ConstraintSet((Prior("A", "B"),)))
    assert nothing.start == nothing.step((), frozenset("A")) == ()
    assert nothing.can_complete((), REMAINDERS[1], frozenset(), assumes_completion=True)


def of(*entries: str, **settings_of_set: object) -> RuleProduct:
    return RuleProduct(parse_constraints({"constraints": list(entries), "settings": settings_of_set}).constraint_set)


def can(rules: RuleProduct, prefix: Sequence[frozenset[str]], tree: Tree | None = None) -> bool:
    places = rules.start
    for shown in prefix:
        places = rules.step(places, shown)
    query = None if tree is None else query_of(tree)
    remainder = NOTHING if query is None else remainder_of(query, query.states[0])
    return rules.can_complete(places, remainder, frozenset(), assumes_completion=True)


def test_nothing_follows_an_end_event() -> None:
    rules = of("response(A, B)", "end(F)")
    assert not can(rules, [], ("SEQ", "A", "F", "B"))
    assert not can(rules, [frozenset("A")], ("SEQ", "F", "B"))
    assert can(rules, [], ("SEQ", "A", "F"))


def test_where_unknown_types_deviate_there_may_be_no_other_event() -> None:
    entries = ("not chain succession(A, A)", "not chain succession(A, B)", "not chain succession(B, A)")
    is_stuck = of(*entries, "not chain succession(B, B)", unknown_types="deviate")
    assert not can(is_stuck, [], ("AND", "A", "B"))
    assert can(of(*entries, "not chain succession(B, B)"), [], ("AND", "A", "B"))
    assert can(of(*entries, "not chain succession(B, B)", unknown_types="deviate", types=["C"]), [], ("AND", "A", "B"))


HIGH, VERY_HIGH = "Quote [price > 1000]", "Quote [price > 2000]"


def test_an_event_shows_what_its_symbols_imply() -> None:
    rules = of(f"precedence({HIGH}, Pay)", f"absence(2, {VERY_HIGH})", f"existence(2, {VERY_HIGH})")
    quote = frozenset(["Quote", HIGH, VERY_HIGH])
    places = rules.step(rules.start, quote)
    assert places != rules.start
    # A price above 2,000 is one above 1,000: without the second, the first cannot be shown.
    only = RuleProduct(parse_constraints([f"existence(2, {VERY_HIGH})", f"choice({HIGH}, Pay)"]).constraint_set)
    assert only.can_complete(only.start, NOTHING, frozenset(), assumes_completion=True)
    assert not only.can_complete(only.start, NOTHING, frozenset([HIGH]), assumes_completion=True)
    assert not only.can_complete(only.start, NOTHING, frozenset([VERY_HIGH]), assumes_completion=True)
    assert not only.can_complete(only.start, NOTHING, frozenset(["Quote"]), assumes_completion=True)


def test_an_atom_shows_the_symbols_that_its_condition_implies() -> None:
    constraint_set = parse_constraints([f"chain response({HIGH}, Pay)"]).constraint_set
    rules = RuleProduct(constraint_set)
    assert constraint_set.symbols == {HIGH: Symbol(parse_step(HIGH))}

    def followed_by_quote(step: str) -> bool:
        first, second = parse_step(step), parse_step("Quote")
        remainder = Remainder((first, second), (frozenset(), frozenset([0])))
        # Only quotes are to come, and any quote may be a cheap one.
        return rules.can_complete(rules.start, remainder, frozenset(["Pay"]), assumes_completion=True)

    assert followed_by_quote("Quote [price > 500]")
    assert not followed_by_quote("Quote [price > 1500]")


def test_too_many_conditions_on_one_type_are_given_up() -> None:
    many = [f"response(Quote [price > {price}], Pay)" for price in range(8)]
    rules = RuleProduct(parse_constraints(many).constraint_set)
    assert rules.can_complete(rules.start, NOTHING, frozenset(), assumes_completion=True)
    assert rules.given_up > 0


@pytest.mark.parametrize("event", ["A", "B", "Other"])
def test_a_step_moves_each_rule_as_its_automaton_does(event: str) -> None:
    rules = RuleProduct(ConstraintSet(rules=tuple(RULES)))
    shown = frozenset([event])
    for prefix in ("", "A", "BA", "AB", "CB"):
        places = after(rules, prefix)
        assert rules.step(places, shown) == tuple(
            automaton.step(place, shown) for automaton, place in zip(rules.automata, places, strict=True)
        )
