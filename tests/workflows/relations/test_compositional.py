"""Extraction from trees, block by block, against the enumeration of their traces."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings

from constraints import Clause, Exclusive, Prior, Require
from tests.builders.workflows import process_trees
from tests.references.workflows import Word, enumerate_language, extraction_of_words, is_followed
from workflows import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    OrderSettings,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    activity_names,
    order_fulfilment,
)
from workflows.relations import compositional
from workflows.relations.compositional import extraction_of_tree
from workflows.relations.extraction import Extraction, Method

A, B, C, D = (Activity(name) for name in "ABCD")

ROUNDS = 4  # for a third of three types to come in a redo part


def clause(body: str, head: str | None = None) -> Clause:
    """A clause over types of one letter."""
    return Clause(frozenset(body), head)


def witnesses_against(extraction: Extraction, language: frozenset[Word]) -> dict[str, int]:
    """For each kind the number of candidates that are not extracted and that no trace speaks against."""
    events = extraction.events
    return {
        "prior": sum(
            not any(is_followed(word, later, earlier) for word in language)
            for earlier, later in set(product(events, events)) - set(extraction.prior)
        ),
        "exclusive": sum(
            not any(one in word and other in word for word in language)
            for one, other in set(product(events, events)) - set(extraction.exclusive)
            if one < other
        ),
        "require": sum(
            not any(one in word and other not in word for word in language)
            for one, other in set(product(events, events)) - set(extraction.require)
            if one != other
        ),
        "end": sum(not any(name in word[:-1] for word in language) for name in set(events) - set(extraction.end)),
    }


@given(process_trees(1_500, most_rounds=ROUNDS, has_repeated_names=True))
@settings(max_examples=300)
def test_all_and_only_what_holds_is_extracted(tree: ProcessTree) -> None:
    language = enumerate_language(tree, ROUNDS)
    extraction = extraction_of_tree(tree)
    assert extraction == extraction_of_words(language)
    assert not any(witnesses_against(extraction, language).values())


@given(process_trees(1_500, most_rounds=ROUNDS))
def test_so_it_is_where_names_are_unique(tree: ProcessTree) -> None:
    assert extraction_of_tree(tree) == extraction_of_words(enumerate_language(tree, ROUNDS))


@given(process_trees(1_500, has_repeated_names=True))
def test_every_origin_is_words_for_something_that_holds(tree: ProcessTree) -> None:
    extraction = extraction_of_tree(tree)
    for constraint in extraction.constraints:
        assert extraction.origins[constraint]
    assert set(extraction.origins) == set(extraction.constraints)
    assert len(extraction.origins) == len(extraction.constraints)


@pytest.mark.parametrize(
    ("tree", "horn"),
    [
        (Silent(), []),
        (Sequence((A, B)), [clause("", "A"), clause("", "B")]),
        (ExclusiveChoice((A, B)), []),
        (ExclusiveChoice((Sequence((A, B)), Sequence((B, C)), Sequence((A, C)))), [clause("ABC")]),
        (Loop(body=ExclusiveChoice((A, B)), redo=C), [clause("AB", "C")]),
        (Loop(body=ExclusiveChoice((A, B, C)), repetitions=2), [clause("ABC")]),
        (Loop(body=ExclusiveChoice((A, B, C)), repetitions=3), []),
        (Instances(body=ExclusiveChoice((A, B, C))), []),
        (ExclusiveChoice((A, B, Parallel((A, B, C)))), [clause("AB", "C")]),
        (InclusiveChoice((A, B, C)), []),
    ],
)
def test_clauses_over_three_types(tree: ProcessTree, horn: list[Clause]) -> None:
    assert sorted(map(str, extraction_of_tree(tree).horn)) == sorted(map(str, horn))


def test_a_repeated_label_is_at_most_once_where_its_places_exclude_each_other() -> None:
    alternatives = extraction_of_tree(ExclusiveChoice((Sequence((A, B)), Sequence((C, A)))))
    assert ("A", "A") in alternatives.prior
    assert ("B", "C") in alternatives.exclusive
    assert ("A", "A") not in extraction_of_tree(Sequence((A, B, A))).prior


@pytest.mark.parametrize("quotes", [3, None])
def test_the_order_workflow_has_the_published_counts(quotes: int | None) -> None:
    extraction = extraction_of_tree(order_fulfilment(OrderSettings(quotes=quotes)))
    kinds = Counter(type(constraint) for constraint in extraction.constraints if not isinstance(constraint, Clause))
    assert kinds == {Prior: 235, Exclusive: 20, Require: 278}
    assert {one for one, other in extraction.prior if one == other} == set(activity_names(order_fulfilment())) - {
        "GenerateQuote"
    }
    assert extraction.end == ("CancelOrder", "FinishOrder", "RejectOrder")
    assert extraction.horn == (clause("", "CheckCredit"), clause("", "ReceiveOrder"))
    assert extraction.method is Method.COMPOSITIONAL


def test_many_parallel_branches_are_no_matter() -> None:
    branches = [Sequence(tuple(Activity(f"task{row}{place}") for place in range(3))) for row in range(12)]
    extraction = extraction_of_tree(Parallel(tuple(branches)))
    assert len(extraction.prior) == 12 * 3 + 36
    assert len(extraction.require) == 36 * 35
    assert extraction.exclusive == ()


def test_a_deep_tree_is_taken_apart_without_recursion() -> None:
    tree: ProcessTree = A
    for _ in range(3_000):
        tree = Sequence((tree, Silent()))
    assert extraction_of_tree(tree).horn == (clause("", "A"),)


def test_beyond_the_limit_three_types_are_not_looked_at_and_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compositional, "MAX_TYPES", 2)
    extraction = extraction_of_tree(Loop(body=ExclusiveChoice((A, B)), redo=C))
    assert extraction.horn == ()
    assert "3 event types" in extraction.warnings[0]
    assert ("C", "C") not in extraction.prior


@pytest.mark.parametrize(
    ("tree", "constraint", "words"),
    [
        (
            Sequence((A, ExclusiveChoice((B, C), origin="exclusive gateway 'In stock?' (G_1)"))),
            Exclusive("B", "C"),
            "B and C are alternatives of exclusive gateway 'In stock?' (G_1)",
        ),
        (Sequence((A, B), origin="sequence at tree"), Prior("A", "B"), "A comes before B in sequence at tree"),
        (Sequence((A, B)), Prior("A", "A"), "A is in no loop"),
        (Loop(body=A, redo=B, repetitions=2), Prior("B", "B"), "B comes once, between the two rounds of a loop"),
        (
            ExclusiveChoice((A, Sequence((A, B)))),
            Prior("A", "A"),
            "the places of A are alternatives of an exclusive choice",
        ),
        (Loop(body=A, redo=B), Require("B", "A"), "no B without A in a loop"),
        (ExclusiveChoice((C, Parallel((A, B)))), Require("B", "A"), "no B without A in a parallel block"),
        (Sequence((A, B)), clause("", "A"), "A is in no choice"),
        (
            ExclusiveChoice((A, Sequence((A, B)))),
            clause("", "A"),
            "every way through an exclusive choice has A",
        ),
    ],
)
def test_origins_name_the_element(tree: ProcessTree, constraint: Prior, words: str) -> None:
    assert extraction_of_tree(tree).origins[constraint] == words


@pytest.mark.parametrize(
    ("tree", "constraint", "words"),
    [
        (Loop(body=ExclusiveChoice((A, B)), redo=C), clause("AB", "C"), "A and C meet in a loop"),
        (
            ExclusiveChoice((A, B, InclusiveChoice((Parallel((A, B, C)),)))),
            clause("AB", "C"),
            "A and B are alternatives of an exclusive choice",
        ),
        (Sequence((Instances(body=Sequence((A, B))), C)), Require("C", "A"), "no C without A in a sequence"),
        (
            ExclusiveChoice((Instances(body=Parallel((A, B))), C)),
            Require("B", "A"),
            "no B without A in a parallel block",
        ),
    ],
)
def test_origins_of_what_comes_about_in_loops_and_beside(tree: ProcessTree, constraint: Prior, words: str) -> None:
    assert words in extraction_of_tree(tree).origins[constraint]


def test_of_many_places_some_are_named() -> None:
    places = [Sequence((A, B), origin=f"sequence {number}") for number in range(5)]
    words = extraction_of_tree(ExclusiveChoice(tuple(places))).origins[Require("B", "A")]
    assert words.endswith("; and 2 more")
    assert words.count("no B without A in sequence") == 3


def test_what_the_tree_does_not_know_has_no_origin() -> None:
    assert Prior("A", "Z") not in extraction_of_tree(Sequence((A, B))).origins
