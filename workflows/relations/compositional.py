"""Derives exactly the constraints of a block-structured model, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from constraints import Clause, ConstraintSet, Exclusive, Prior, Require
from workflows.relations.extraction import Extraction, Method
from workflows.relations.families import GroupFamilies
from workflows.relations.outline import Outline
from workflows.relations.provenance import Origins, TreeExplanation
from workflows.relations.table import RelationTable, too_many_triples
from workflows.tree import ProcessTree

MAX_TYPES = 160  # with more types, clauses over three types are not derived, because their number is cubic

_ALL = 7


def extraction_of_tree(tree: ProcessTree) -> Extraction:
    """Return exactly the constraints that hold on every trace of a tree. Several leaves may have one name.

    Orders are found between leaves, and then transferred to the names of the leaves. For each set of up to three names,
    the subsets that occur in some trace are computed. With more than ``MAX_TYPES`` names, sets of three are left out,
    and a warning is added.
    """
    outline = Outline.of(tree)
    table = relations_of_outline(outline)
    if len(table.events) > MAX_TYPES:
        warnings: tuple[str, ...] = (too_many_triples(len(table.events), MAX_TYPES),)
    else:
        table, warnings = table.with_long_clauses(_long_clauses(outline, table.events))
    extraction = table.to_extraction(Method.COMPOSITIONAL, warnings)
    return replace(extraction, origins=Origins(extraction, TreeExplanation(outline).of))


def derive_constraints(tree: ProcessTree) -> ConstraintSet:
    """Return the constraints of a tree over pairs of event types, and its end events, as a constraint set.

    Types are in the order of the activities. Orders come first, then exclusions, then requirements. Clauses over three
    types are left out.
    """
    table = relations_of_outline(Outline.of(tree))
    priors = (Prior(*pair) for pair in table.priors)
    exclusives = (Exclusive(*pair) for pair in table.exclusives)
    requires = (Require(*pair) for pair in table.requires)
    return ConstraintSet(constraints=(*priors, *exclusives, *requires), end_events=frozenset(table.ends))


def relations_of_outline(outline: Outline) -> RelationTable:
    """Return the relations between any two event types of a tree. The types are in the order of their first leaves."""
    events = tuple(dict.fromkeys(outline.labels))
    count = len(events)
    places = {name: place for place, name in enumerate(events)}
    owners = np.zeros((len(outline.labels), count), np.float32)
    owners[np.arange(len(outline.labels)), [places[name] for name in outline.labels]] = 1
    follows = (owners.T @ outline.orders().astype(np.float32) @ owners) > 0
    lacks = np.zeros((count, count), np.bool_)
    pairs = GroupFamilies(outline, events, 2)
    first, second = pairs.members.T
    lacks[first, second] = _has(pairs, 1)
    lacks[second, first] = _has(pairs, 2)
    return RelationTable(
        events=events,
        follows=follows,
        lacks=lacks,
        optional=_has(GroupFamilies(outline, events, 1), 0),
    )


def _has(groups: GroupFamilies, subset: int) -> NDArray[np.bool_]:
    """Return a mask of the groups (sets of event types) of which some trace has exactly the members in ``subset``.

    ``subset`` has bit ``i`` for the member ``i``.
    """
    holds: NDArray[np.bool_] = (groups.families >> subset) & 1 == 1
    return holds


def _long_clauses(outline: Outline, events: tuple[str, ...]) -> Iterator[Clause]:
    """Yield the clauses over three types that do not follow from a shorter clause.

    There are two kinds of clauses. Either three types never occur in one trace, but any two of them can. Or two types
    that can occur together require a third type, but neither of them requires it alone.
    """
    triples = GroupFamilies(outline, events, 3)
    apart = ~_has(triples, _ALL)
    for member in range(3):
        apart &= _has(triples, _ALL - (1 << member))
    for group in triples.members[apart].tolist():
        yield Clause(frozenset(events[place] for place in group), None)
    for head in range(3):
        first, second = (member for member in range(3) if member != head)
        holds = _has(triples, _ALL) & _has(triples, 1 << first) & _has(triples, 1 << second)
        holds &= ~_has(triples, _ALL - (1 << head))
        for group in triples.members[holds].tolist():
            yield Clause(frozenset({events[group[first]], events[group[second]]}), events[group[head]])
