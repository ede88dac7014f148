"""Minimal covers: everything follows from them, and from nothing less."""

from random import Random

import pytest
from hypothesis import given

from constraints import Clause, Constraint, ConstraintSet, End, Exclusive, Prior, Remainder, Require
from nfa import Atom
from tests.builders.workflows import process_trees, random_tree
from tests.references.alive import alive
from workflows import Activity, ExclusiveChoice, Extraction, Parallel, ProcessTree, Sequence, Silent, order_fulfilment
from workflows.relations.compositional import extraction_of_tree
from workflows.relations.cover import minimal_cover

A, B, C, D = (Activity(name) for name in "ABCD")


def follows(constraint: Constraint, known: ConstraintSet) -> bool:
    """Whether every trace that keeps a set keeps a constraint, by the reference of the constraint language."""
    match constraint:
        case Prior(earlier, later):
            return not alive(known, frozenset(), remainder([later, earlier], in_row=True))
        case Exclusive() | Clause(_, None):
            return not alive(known, frozenset(), remainder(list(constraint.names)))
        case Require(trigger, required):
            return required in known.horn_closure({trigger})
        case Clause(body, head):
            return head in known.horn_closure(body)


def remainder(names: list[str], *, in_row: bool = False) -> Remainder:
    """Events that are still to come, one after the other or in any order."""
    before = tuple(frozenset(range(place)) if in_row else frozenset[int]() for place in range(len(names)))
    return Remainder(atoms=tuple(Atom((name,), f"a{place}") for place, name in enumerate(names)), before=before)


def check(extraction: Extraction) -> tuple[Constraint, ...]:
    """The cover of an extraction, from which everything follows and nothing can be left out."""
    cover = minimal_cover(extraction)
    ends = [End(name) for name in extraction.end]
    known = ConstraintSet.of([*cover, *ends])
    assert set(cover) <= set(extraction.constraints)
    assert len(set(cover)) == len(cover)
    assert not [constraint for constraint in extraction.constraints if not follows(constraint, known)]
    for constraint in cover:
        assert not follows(constraint, ConstraintSet.of([*(one for one in cover if one != constraint), *ends]))
    return cover


@given(process_trees(100_000, has_repeated_names=True))
def test_everything_follows_from_the_cover_and_nothing_can_be_left_out(tree: ProcessTree) -> None:
    check(extraction_of_tree(tree))


@pytest.mark.parametrize("number", range(12))
def test_so_it_is_in_larger_models(number: int) -> None:
    check(extraction_of_tree(random_tree(Random(number), tuple("ABCDEFGHIJ"))))


@pytest.mark.parametrize(
    ("tree", "cover"),
    [
        (Silent(), []),
        (
            Sequence((A, B, C)),
            ["existence(A)", "existence(B)", "existence(C)", "prior(A, A)", "prior(A, B)", "prior(B, B)"],
        ),
        (ExclusiveChoice((A, B)), []),
        (
            ExclusiveChoice((Sequence((A, B)), Sequence((C, D)))),
            ["prior(A, A)", "prior(C, C)", "require(A, B)", "require(B, A)", "require(C, D)", "require(D, C)"],
        ),
    ],
)
def test_small_covers(tree: ProcessTree, cover: list[str]) -> None:
    assert sorted(map(str, check(extraction_of_tree(tree)))) == sorted(cover)


@pytest.mark.parametrize(
    ("tree", "clause"),
    [
        (ExclusiveChoice((A, B, Parallel((A, B, C)))), "implication(A, B, C)"),
        (ExclusiveChoice((Parallel((A, B)), Parallel((B, C)), Parallel((A, C)))), "not_together(A, B, C)"),
    ],
)
def test_clauses_over_three_types_are_kept(tree: ProcessTree, clause: str) -> None:
    assert clause in map(str, check(extraction_of_tree(tree)))


def test_clauses_over_three_types_that_follow_from_others_are_left_out() -> None:
    """D comes with C and C with D, so what holds of the one holds of the other."""
    both = Parallel((A, B, C, D))
    cover = check(extraction_of_tree(ExclusiveChoice((A, B, both))))
    assert sum(str(part).startswith("implication(A, B") for part in cover) == 1
    apart = ExclusiveChoice((Parallel((A, B)), Parallel((B, C, D)), Parallel((A, C, D))))
    assert sum(str(part).startswith("not_together(A, B") for part in check(extraction_of_tree(apart))) == 1


def test_the_order_workflow_needs_59_of_535() -> None:
    assert len(check(extraction_of_tree(order_fulfilment()))) == 59
