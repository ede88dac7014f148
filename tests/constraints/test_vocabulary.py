"""The templates: each says what its examples and its formula say, and the page shows them."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from constraints import (
    Clause,
    ConstraintSet,
    End,
    Exclusive,
    Part,
    Prior,
    Require,
    Rule,
    parse_constraints,
    to_document,
)
from constraints.documents.vocabulary import TEMPLATES, Template, template_of
from constraints.rules.automaton import RuleAutomaton
from tests.references.rules import formula_of, holds

PAGE = Path(__file__).parents[2] / "docs" / "constraints.md"
NAMES = ["A", "B", "C"]
ALL_SHOWN = [frozenset(text) for text in ("", "A", "B", "AB")]

AUTOMATA = cache(RuleAutomaton.of)

Word = Sequence[frozenset[str]]


def keeps(part: Part, word: Word) -> bool:
    """By definition, one event after the other."""
    seen = frozenset().union(*word)
    after = [(event, frozenset().union(*word[place + 1 :])) for place, event in enumerate(word)]
    match part:
        case Prior(earlier, later):
            return not any(later in event and earlier in rest for event, rest in after)
        case End(name):
            return all(name not in event or place == len(word) - 1 for place, event in enumerate(word))
        case Clause(body, head):
            return not body <= seen or head in seen
        case Exclusive() | Require():
            return keeps(part.clause, word)
        case Rule():
            automaton = AUTOMATA(part)
            place = automaton.start
            for event in word:
                place = automaton.step(place, event)
            return place in automaton.accepting


def word_of(example: str) -> Word:
    return [] if example == "-" else [frozenset([name]) for name in example.split()]


def parts_of(template: Template) -> tuple[Part, ...]:
    return parse_constraints([template.form]).constraint_set.parts


def names_of(template: Template) -> list[str]:
    return [name for name in NAMES if name in template.form.partition("(")[2]]


SHOWN = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `") and line.count("|") == 7
]
"""The rows of the page's table: form, meaning, traces that keep and that break it, formula, parts."""

EXAMPLES = [
    (template, example.strip("`"), is_kept)
    for template, (_, _, kept, broken, *_) in zip(TEMPLATES, SHOWN, strict=True)
    for examples, is_kept in ((kept, True), (broken, False))
    for example in examples.split(" · ")
]


@pytest.mark.parametrize(("template", "example", "is_kept"), EXAMPLES, ids=lambda value: getattr(value, "name", value))
def test_examples(template: Template, example: str, is_kept: bool) -> None:
    word = word_of(example)
    formula = formula_of(template.name, names_of(template), 2 if template.count else None)
    assert holds(formula, word) == is_kept
    assert all(keeps(part, word) for part in parts_of(template)) == is_kept


def test_every_template_has_examples_of_both_kinds() -> None:
    assert all(meaning and " · " in kept and " · " in broken for _, meaning, kept, broken, *_ in SHOWN)


def counted() -> Iterator[tuple[Template, int | None]]:
    for template in TEMPLATES:
        yield from ((template, count) for count in ((1, 2, 3) if template.count else (None,)))


@pytest.mark.parametrize(("template", "count"), list(counted()), ids=lambda value: getattr(value, "name", value))
def test_the_parts_together_say_what_the_formula_says(template: Template, count: int | None) -> None:
    names = names_of(template)
    parts = template.translate(names, count or 1)
    formula = formula_of(template.name, names, count)
    letters = [frozenset(shown) for shown in ALL_SHOWN if shown <= set(names)]
    if len(names) == 3:
        letters = [frozenset(text) for text in ("", "A", "B", "C", "AC")]
    for length in range(6 if len(names) < 3 else 5):
        for word in product(letters, repeat=length):
            assert all(keeps(part, word) for part in parts) == holds(formula, word), word


@pytest.mark.parametrize(("template", "count"), list(counted()), ids=lambda value: getattr(value, "name", value))
def test_what_comes_with_a_rule_follows_from_it(template: Template, count: int | None) -> None:
    names = names_of(template)
    parts = template.translate(names, count or 1)
    rules = [part for part in parts if isinstance(part, Rule)]
    assert len(rules) <= 1
    for rule in rules:
        for length in range(6):
            for word in product(ALL_SHOWN, repeat=length):
                assert not keeps(rule, word) or all(keeps(part, word) for part in parts), word


@pytest.mark.parametrize(
    ("name", "template", "count"),
    [
        ("Existence", "existence", None),
        ("absence2", "absence", 2),
        ("Absence3", "absence", 3),
        ("existence 2", "existence", 2),
        ("exactly_one", "exactly", 1),
        ("at most once", "absence", 2),
        ("ends with", "last", None),
        ("RespondedExistence", "responded existence", None),
        ("NotChainResponse", "not chain succession", None),
        ("not response", "not succession", None),
        ("NON-CO-EXISTENCE", "not co-existence", None),
        ("end", "end", None),
    ],
)
def test_names(name: str, template: str, count: int | None) -> None:
    found = template_of(name)
    assert found is not None
    assert (found[0].name, found[1]) == (template, count)


@pytest.mark.parametrize("name", ["banana", "response2", "absence99999", "", "last2"])
def test_other_names_mean_nothing(name: str) -> None:
    assert template_of(name) is None


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_every_template_goes_to_the_canonical_form_and_back(template: Template) -> None:
    constraint_set = ConstraintSet.of(parts_of(template))
    document = to_document(constraint_set)
    again = parse_constraints(document).constraint_set
    assert again == constraint_set
    assert to_document(again) == document


def rows() -> Iterator[list[str]]:
    for template in TEMPLATES:
        formula = formula_of(template.name, names_of(template), 2 if template.count else None)
        parts = parts_of(template)
        sets = [f"`{part}`" for part in parts if not isinstance(part, Rule)]
        sets += ["an automaton"] if len(sets) < len(parts) else []
        yield [f"`{template.form}`", str(formula), ", ".join(sets)]


def test_the_page_shows_every_template_as_it_is() -> None:
    shown = [[form, formula, parts] for form, _, _, _, formula, parts in SHOWN]
    assert shown == list(rows())
