"""Cycles of order constraints, whose types cannot all occur in one trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from constraints.model import ConstraintSet, End, Part, Prior


@dataclass(frozen=True, slots=True)
class PriorCycle:
    """A cycle of types that starts with the alphabetically first type.

    ``constraints[i]`` orders ``types[i]`` before the next type.
    """

    types: tuple[str, ...]
    constraints: tuple[Part, ...]


def prior_cycles(constraint_set: ConstraintSet) -> tuple[PriorCycle, ...]:
    """Return the shortest cycle of orders through each type, sorted and without repetitions.

    A cycle is left out if two of its types exclude each other or are both end events. A cycle of symbols of a single
    type is left out, too, because one event can show all of them.
    """
    types = sorted(constraint_set.end_events.union(*(part.names for part in constraint_set.constraints)))
    successors = {
        name: [other for other in types if other != name and constraint_set.comes_before(name, other)] for name in types
    }
    apart = {frozenset(clause.body) for clause in constraint_set.clauses if clause.head is None}
    apart |= {frozenset({first, second}) for first in constraint_set.end_events for second in constraint_set.end_events}
    cycles = {cycle for name in types if (cycle := _shortest_cycle(name, successors))}
    return tuple(
        PriorCycle(
            cycle, tuple(_order(constraint_set, *pair) for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True))
        )
        for cycle in sorted(cycles)
        if len(set(map(constraint_set.type_of, cycle))) > 1
        and not any(pair <= frozenset(cycle) for pair in apart if len(pair) > 1)
    )


def _order(constraint_set: ConstraintSet, first: str, second: str) -> Part:
    return End(second) if second in constraint_set.end_events else Prior(first, second)


def _shortest_cycle(start: str, successors: Mapping[str, list[str]]) -> tuple[str, ...] | None:
    """Return a shortest cycle through ``start``, or None. The cycle starts with the alphabetically first type."""
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for other in successors[name]:
            if other == start:
                path = [name]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                path.reverse()
                lead = path.index(min(path))
                return tuple(path[lead:] + path[:lead])
            if other not in came_from:
                came_from[other] = name
                waiting.append(other)
    return None
