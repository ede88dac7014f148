"""Finds the events to which a pattern listens: every event of a type, or only events in some cells of a filter index.

In the second case, each of the pattern's steps of the type has a filter in the same dimension. An event for which none
of these filters holds concerns no step of the pattern. The engine does not test the filters again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nfa.conditions.filter_index import NO_CELL, FilterIndex
from nfa.conditions.filters import Constant, Dimension, Filter, filters_of
from nfa.syntax import Atom

LEAST_CONSTANTS = 8  # with fewer distinct constants, testing each is as fast

TypeCode = int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOfType:
    """All steps of a pattern that bind or forbid events of one type. At least one such step exists.

    If ``is_apart``, an event that matches none of the steps has no effect. Each step can then be indexed by its own
    constants.
    """

    pattern: int
    code: TypeCode
    atoms: tuple[Atom, ...]
    is_apart: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """The indexed steps of a pattern for one event type.

    ``cells`` has, for each step, the sorted cells of the filter index whose events it must see. ``reduced`` is as in
    ``Listening.reduced``.
    """

    cells: Mapping[Atom, tuple[int, ...]]
    reduced: Mapping[Atom, Atom]


@dataclass(frozen=True, slots=True)
class Listening:
    """The events that the steps of all patterns must see (listen to), by event type or by cell of a filter index.

    ``placed`` has the indexed steps, by pattern number and type code. All other steps listen to every event of their
    types.
    """

    index: FilterIndex = field(default_factory=FilterIndex)
    placed: Mapping[tuple[int, TypeCode], Placed] = field(default_factory=dict)

    def cells_of(self, pattern: int, code: TypeCode, atom: Atom) -> tuple[int, ...]:
        """Return the cells whose events a step must see. The result ``(NO_CELL,)`` means every event of the type."""
        placed = self.placed.get((pattern, code))
        return (NO_CELL,) if placed is None else placed.cells[atom]

    def cells_of_all(self, pattern: int, code: TypeCode) -> list[int]:
        """Return the sorted cells whose events at least one step of a pattern must see, for events of a type."""
        placed = self.placed.get((pattern, code))
        return [NO_CELL] if placed is None else sorted({cell for cells in placed.cells.values() for cell in cells})

    def reduced(self, pattern: int, code: TypeCode, atom: Atom) -> Atom:
        """Return a step without the conjunct that is true for all events in the step's cells.

        The result may also lack the step's residual.
        """
        placed = self.placed.get((pattern, code))
        return atom if placed is None else placed.reduced[atom]

    def reduced_for_all(self, pattern: int, codes: Sequence[TypeCode], atom: Atom) -> Atom:
        """Return a step without the conjunct that ``reduced`` removes for every type in ``codes``.

        If the types remove different conjuncts, the step is returned unchanged.
        """
        reduced_steps = {self.reduced(pattern, code, atom) for code in codes}
        return reduced_steps.pop() if len(reduced_steps) == 1 else atom


def listen(groups: Iterable[StepsOfType]) -> Listening:
    """Build the filter index for the steps of all patterns.

    A group (the steps of a pattern for one type) is indexed in one dimension, in which all its steps have filters.
    Dimensions of equality are preferred to dimensions of bounds. Among equals, the dimension with the most constants is
    preferred. Dimensions with fewer than ``LEAST_CONSTANTS`` constants are not used.
    """
    filters = {group: _common(group) for group in dict.fromkeys(groups)}
    constants: dict[tuple[TypeCode, Dimension], set[Constant]] = {}
    for group, dimensions in filters.items():
        for dimension, step_filters in dimensions.items():
            constants.setdefault((group.code, dimension), set()).update(
                *(step_filter.constants for step_filter in step_filters)
            )
    sizes = {place: len(distinct_constants) for place, distinct_constants in constants.items()}
    group_dimensions = {
        group: dimension for group, dimensions in filters.items() for dimension in _best(group.code, dimensions, sizes)
    }
    places = {group: _constants_of(group, filters[group][dimension]) for group, dimension in group_dimensions.items()}
    index = FilterIndex(
        (group.code, group_dimensions[group], step_constants)
        for group, by_step in places.items()
        for step_constants in by_step
    )
    placed = {}
    for group, by_step in places.items():
        best_dimension = group_dimensions[group]
        cells = [
            tuple(sorted(index.cell(group.code, best_dimension, constant) for constant in step_constants))
            for step_constants in by_step
        ]
        steps = list(zip(group.atoms, filters[group][best_dimension], by_step, strict=True))
        placed[group.pattern, group.code] = Placed(
            cells=dict(zip(group.atoms, cells, strict=True)),
            reduced={
                atom: step_filter.rest if step_filter.constants == step_constants else atom
                for atom, step_filter, step_constants in steps
            },
        )
    return Listening(index, placed)


def _common(group: StepsOfType) -> dict[Dimension, list[Filter]]:
    step_filters = [filters_of(atom) for atom in group.atoms]
    return {
        dimension: [filters[dimension] for filters in step_filters]
        for dimension in step_filters[0]
        if all(dimension in filters for filters in step_filters)
    }


def _best(
    code: TypeCode, dimensions: Iterable[Dimension], sizes: Mapping[tuple[TypeCode, Dimension], int]
) -> list[Dimension]:
    ranked = [
        (dimension.relation == "=", sizes[code, dimension], repr(dimension.leaf), dimension)
        for dimension in dimensions
        if sizes[code, dimension] >= LEAST_CONSTANTS
    ]
    return [max(ranked, key=lambda rank: rank[:3])[3]] if ranked else []


def _constants_of(group: StepsOfType, filters: Sequence[Filter]) -> list[frozenset[Constant]]:
    """Return the constants by which each step is indexed. All steps with bounds are indexed by the weakest bound."""
    all_constants = frozenset[Constant]().union(*(step_filter.constants for step_filter in filters))
    bounds = [constant for constant in all_constants if isinstance(constant, tuple)]
    if group.is_apart and not bounds:
        return [step_filter.constants for step_filter in filters]
    return [frozenset([min(bounds)]) if bounds else all_constants] * len(filters)
