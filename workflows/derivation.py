"""Constraints that follow from a block-structured workflow, pair by pair.

For a process tree whose activities have unique names, the derivation finds all and only the constraints of the three
pairwise kinds that hold on every trace of its language:

- ``prior(E, F)`` for every pair, E with itself included, where no F is ever followed by an E. This counts both
  directions of a pair that never occurs together: such a prior holds as well, and blocks E once F was seen.
- ``exclusive(E, F)`` once for every pair of different types that never occur together.
- ``require(E, F)`` for every pair of different types where F occurs whenever E does.
- End events: the types that nothing ever follows.

The bottom-up step keeps, for each block, four relations between its activities. It is exact because the choices in
different blocks are independent and every activity occurs in some trace. An open loop counts as one or more rounds; a
fixed number of rounds gives the same pairs, except that a redo part which comes only once does not follow itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from typing import TypeAlias

from constraints import ConstraintSet, Exclusive, Prior, Require
from workflows.errors import UnderivableWorkflow
from workflows.tree import Activity, ExclusiveChoice, Loop, Parallel, ProcessTree, Sequence, Silent, iterate_activities

Pairs: TypeAlias = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """What can happen between the activities of a block.

    Attributes:
        names: The activities, all of which occur in some trace.
        follows: (E, F): in some trace an E comes, and later an F.
        meets: (E, F): some trace has both; symmetric, E with itself included.
        lacks: (E, F): some trace has an E and no F.
        optional: Activities that some trace does without.
    """

    names: frozenset[str]
    follows: Pairs
    meets: Pairs
    lacks: Pairs
    optional: frozenset[str]


def derive_constraints(tree: ProcessTree) -> ConstraintSet:
    """All pairwise constraints of a workflow and its end events, ordered by the activities' places in the tree.

    Raises:
        UnderivableWorkflow: An activity stands in two places; the pairwise derivation needs unique names.
    """
    counts = Counter(activity.name for activity in iterate_activities(tree))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise UnderivableWorkflow(
            f"{', '.join(repeated)} stands in more than one place of the workflow; give each place a name of its own",
            activities=list(repeated),
        )
    names = tuple(counts)
    relations = relate(tree)
    priors = [
        Prior(first, second) for first, second in product(names, names) if (second, first) not in relations.follows
    ]
    exclusives = [
        Exclusive(first, second) for first, second in combinations(names, 2) if (first, second) not in relations.meets
    ]
    requires = [
        Require(first, second)
        for first, second in product(names, names)
        if first != second and (first, second) not in relations.lacks
    ]
    followed = {first for first, _ in relations.follows}
    return ConstraintSet(
        constraints=(*priors, *exclusives, *requires),
        end_events=frozenset(name for name in names if name not in followed),
    )


def relate(tree: ProcessTree) -> Relations:
    """The relations between the activities of a tree with unique names."""
    match tree:
        case Activity(name):
            return Relations(
                names=frozenset({name}),
                follows=frozenset(),
                meets=frozenset({(name, name)}),
                lacks=frozenset(),
                optional=frozenset(),
            )
        case Silent():
            return _NOTHING
        case Sequence(parts):
            return reduce(_in_sequence, map(relate, parts))
        case Parallel(branches):
            return reduce(_in_parallel, map(relate, branches))
        case ExclusiveChoice(branches):
            return reduce(_in_choice, map(relate, branches))
        case Loop():
            return _in_loop(tree)


_NOTHING = Relations(names=frozenset(), follows=frozenset(), meets=frozenset(), lacks=frozenset(), optional=frozenset())


def _cross(first: frozenset[str], second: frozenset[str]) -> Pairs:
    return frozenset(product(first, second))


def _side_by_side(first: Relations, second: Relations, follows: Pairs) -> Relations:
    """Both blocks occur, with independent choices."""
    return Relations(
        names=first.names | second.names,
        follows=first.follows | second.follows | follows,
        meets=first.meets | second.meets | _cross(first.names, second.names) | _cross(second.names, first.names),
        lacks=first.lacks | second.lacks | _cross(first.names, second.optional) | _cross(second.names, first.optional),
        optional=first.optional | second.optional,
    )


def _in_sequence(first: Relations, second: Relations) -> Relations:
    return _side_by_side(first, second, _cross(first.names, second.names))


def _in_parallel(first: Relations, second: Relations) -> Relations:
    return _side_by_side(first, second, _cross(first.names, second.names) | _cross(second.names, first.names))


def _in_choice(first: Relations, second: Relations) -> Relations:
    names = first.names | second.names
    return Relations(
        names=names,
        follows=first.follows | second.follows,
        meets=first.meets | second.meets,
        lacks=first.lacks | second.lacks | _cross(first.names, second.names) | _cross(second.names, first.names),
        optional=names,
    )


def _in_loop(loop: Loop) -> Relations:
    """Rounds are independent: what one body lacks, all bodies can lack."""
    body, redo = relate(loop.body), relate(loop.redo)
    if loop.repetitions == 1:
        return body
    names = body.names | redo.names
    is_redo_repeated = loop.repetitions is None or loop.repetitions > 2
    within_redo = _cross(redo.names, redo.names)
    across = _cross(names, names) - within_redo
    without_redo = redo.names if loop.repetitions is None else redo.optional
    return Relations(
        names=names,
        follows=across | (within_redo if is_redo_repeated else redo.follows),
        meets=across | (within_redo if is_redo_repeated else redo.meets),
        lacks=body.lacks | redo.lacks | _cross(body.names, without_redo) | _cross(redo.names, body.optional),
        optional=body.optional | without_redo,
    )
