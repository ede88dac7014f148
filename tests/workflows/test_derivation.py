"""Derived constraints: all and only those that hold."""

from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given

from constraints import ConstraintSet, Exclusive, Prior, Require
from tests.builders.workflows import MOST_ROUNDS, process_trees
from tests.references.workflows import enumerate_language, is_followed
from workflows import (
    Activity,
    ExclusiveChoice,
    Loop,
    OrderSettings,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    activity_names,
    derive_constraints,
    order_fulfilment,
)

A, B, C = Activity("A"), Activity("B"), Activity("C")


def constraints_by_enumeration(tree: ProcessTree) -> ConstraintSet:
    """The pairwise constraints that hold on every enumerated trace, by their definitions."""
    names, language = activity_names(tree), enumerate_language(tree, MOST_ROUNDS)
    priors = [
        Prior(first, second)
        for first, second in product(names, names)
        if not any(is_followed(word, second, first) for word in language)
    ]
    exclusives = [
        Exclusive(first, second)
        for first, second in combinations(names, 2)
        if not any(first in word and second in word for word in language)
    ]
    requires = [
        Require(first, second)
        for first, second in product(names, names)
        if first != second and all(second in word for word in language if first in word)
    ]
    ends = frozenset(name for name in names if all(name not in word[:-1] for word in language))
    return ConstraintSet(constraints=(*priors, *exclusives, *requires), end_events=ends)


@given(process_trees())
def test_derivation_agrees_with_enumeration(tree: ProcessTree) -> None:
    derived, expected = derive_constraints(tree), constraints_by_enumeration(tree)
    assert set(derived.constraints) == set(expected.constraints)
    assert len(derived.constraints) == len(expected.constraints)
    assert derived.end_events == expected.end_events


@pytest.mark.parametrize(
    ("tree", "present", "absent"),
    [
        (Sequence((A, B)), {Prior("A", "B"), Prior("A", "A"), Require("A", "B"), Require("B", "A")}, {Prior("B", "A")}),
        (ExclusiveChoice((A, B)), {Exclusive("A", "B"), Prior("A", "B"), Prior("B", "A")}, {Require("A", "B")}),
        (
            Parallel((A, B)),
            {Require("A", "B"), Prior("A", "A")},
            {Prior("A", "B"), Prior("B", "A"), Exclusive("A", "B")},
        ),
        (Sequence((Loop(body=A), B)), {Prior("A", "B"), Require("B", "A")}, {Prior("A", "A"), Prior("B", "A")}),
        (Loop(body=A, redo=B, repetitions=2), {Prior("B", "B"), Require("A", "B")}, {Prior("A", "A")}),
        (Loop(body=A, redo=B, repetitions=3), {Require("A", "B")}, {Prior("B", "B")}),
        (Loop(body=A, redo=B), {Require("B", "A")}, {Prior("B", "B"), Require("A", "B"), Prior("A", "B")}),
        (Loop(body=ExclusiveChoice((A, B)), repetitions=1), {Exclusive("A", "B"), Prior("A", "A")}, set()),
        (Loop(body=ExclusiveChoice((A, B))), set(), {Exclusive("A", "B"), Prior("A", "B"), Require("A", "B")}),
    ],
)
def test_small_workflows(tree: ProcessTree, present: set[Prior], absent: set[Prior]) -> None:
    constraints = set(derive_constraints(tree).constraints)
    assert present <= constraints
    assert not absent & constraints


@pytest.mark.parametrize(
    ("tree", "ends"),
    [
        (Sequence((A, B)), {"B"}),
        (Sequence((A, ExclusiveChoice((B, C)))), {"B", "C"}),
        (Sequence((A, ExclusiveChoice((B, Silent())))), {"B"}),
        (Parallel((A, B)), set()),
        (Loop(body=A, repetitions=2), set()),
        (Silent(), set()),
    ],
)
def test_end_events_are_those_that_nothing_follows(tree: ProcessTree, ends: set[str]) -> None:
    assert derive_constraints(tree).end_events == ends


def test_branches_of_probability_zero_belong_to_the_workflow() -> None:
    never = ExclusiveChoice((A, B), (0.0, 1.0))
    assert derive_constraints(never) == derive_constraints(ExclusiveChoice((A, B)))


def test_a_name_in_two_places_is_one_event_type() -> None:
    derived = derive_constraints(Sequence((A, B, ExclusiveChoice((A, C)), C)))
    assert Require("A", "C") in derived.constraints
    assert Prior("A", "A") not in derived.constraints
    assert len(derived.constraints) == len(set(derived.constraints))


@pytest.mark.parametrize("quotes", [3, None])
def test_the_order_workflow_has_the_published_counts(quotes: int | None) -> None:
    derived = derive_constraints(order_fulfilment(OrderSettings(quotes=quotes)))
    kinds = Counter(type(constraint) for constraint in derived.constraints)
    assert kinds == {Prior: 235, Exclusive: 20, Require: 278}
    at_most_once = {one.earlier for one in derived.constraints if isinstance(one, Prior) and one.earlier == one.later}
    assert at_most_once == set(activity_names(order_fulfilment())) - {"GenerateQuote"}
    assert len(at_most_once) == 20
    assert derived.end_events == {"RejectOrder", "CancelOrder", "FinishOrder"}


def test_the_order_workflow_implies_what_the_experiments_name() -> None:
    constraints = set(derive_constraints(order_fulfilment()).constraints)
    assert {
        Exclusive("UseLocalStock", "UseRemoteStock"),
        Exclusive("CancelOrder", "FinishOrder"),
        Prior("GenerateQuote", "SendQuote"),
        Prior("GenerateInvoice", "SendInvoice"),
    } <= constraints
    assert Prior("GenerateInvoice", "SendQuote") not in constraints
