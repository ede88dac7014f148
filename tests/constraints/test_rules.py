"""Rule automata against their formulas: over every short word, events that show both names among them."""

from collections.abc import Iterator
from itertools import product

import pytest

from constraints import Rule
from constraints.rules.automaton import RuleAutomaton
from constraints.rules.machines import RULE_KINDS
from tests.references.rules import Formula, Shows, formula_of, holds

COUNTED = ("existence", "absence", "exactly")
OF_ONE = (*COUNTED, "init", "last")


def rules() -> Iterator[Rule]:
    for kind in sorted(RULE_KINDS):
        for count in (1, 2, 3) if kind in COUNTED else (None,):
            yield Rule(kind, ("A",) if kind in OF_ONE else ("A", "B"), count)
    yield Rule("not chain succession", ("A", "A"))


RULES = list(rules())
ALL_SHOWN = [frozenset(text) for text in ("", "A", "B", "AB")]


def letters_of(rule: Rule) -> list[frozenset[str]]:
    return [shown for shown in ALL_SHOWN if shown <= set(rule.names)]


def words(rule: Rule, longest: int = 6) -> Iterator[tuple[frozenset[str], ...]]:
    for length in range(longest + 1):
        yield from product(letters_of(rule), repeat=length)


def place_after(automaton: RuleAutomaton, word: tuple[frozenset[str], ...]) -> int:
    place = automaton.start
    for shown in word:
        place = automaton.step(place, shown)
    return place


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_automaton_accepts_what_its_formula_says(rule: Rule) -> None:
    automaton = RuleAutomaton.of(rule)
    formula = formula_of(rule.kind, rule.names, rule.count)
    wrong = [
        word for word in words(rule) if (place_after(automaton, word) in automaton.accepting) != holds(formula, word)
    ]
    assert wrong == []


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_automaton_is_minimal_and_numbered_as_reached(rule: Rule) -> None:
    automaton = RuleAutomaton.of(rule)
    reached = [automaton.start]
    for place in reached:
        reached += dict.fromkeys(after for after in automaton.table[place] if after not in reached)
    assert reached == sorted(automaton.places)
    # Some word distinguishes any two places.
    told = {
        frozenset(word for word in words(rule, 4) if place_from(automaton, place, word) in automaton.accepting)
        for place in automaton.places
    }
    assert len(told) == len(automaton.places)


def place_from(automaton: RuleAutomaton, place: int, word: tuple[frozenset[str], ...]) -> int:
    for shown in word:
        place = automaton.step(place, shown)
    return place


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_traps_and_settled_places(rule: Rule) -> None:
    automaton = RuleAutomaton.of(rule)
    for place in automaton.places:
        ends = {place_from(automaton, place, word) in automaton.accepting for word in words(rule, 4)}
        assert (place in automaton.traps) == (True not in ends)
        assert (place in automaton.settled) == (False not in ends)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_other_events_count_for_some_rules_only(rule: Rule) -> None:
    is_by_position = rule.kind in ("init", "last") or "chain" in rule.kind
    assert RuleAutomaton.of(rule).counts_every_event == is_by_position


@pytest.mark.parametrize(
    "rule", [Rule("banana", ("A", "B")), Rule("existence", ("A",)), Rule("response", ("A", "B"), 2)], ids=str
)
def test_what_is_no_rule(rule: Rule) -> None:
    with pytest.raises(ValueError, match="is not a rule"):
        RuleAutomaton.of(rule)


def test_an_unknown_operator_is_not_taken_for_another() -> None:
    with pytest.raises(ValueError, match="is not an operator"):
        holds(Formula("P", (Shows("A"),)), ())
