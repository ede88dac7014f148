"""The decision, slow and obvious: can a trace that has shown these types still complete this?

This is the executable meaning of everything in this package (constraint-aware CEP, section 3.1, theorem 1). The twin
that answers the same fast is ``constraints.reasoner``.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from constraints.model import ConstraintSet
from constraints.remainder import NOTHING, Remainder

Reason = Literal["occurrence", "blocked", "order"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Truthy if alive.

    Attributes:
        reason: None, or why nothing can complete: ``occurrence`` (a clause rules the needed types out), ``blocked``
            (the last chance of one has passed), ``order`` (they cannot be put in a row).
    """

    reason: Reason | None = None

    @property
    def is_alive(self) -> bool:
        """Whether some conforming continuation completes the remainder."""
        return self.reason is None

    def __bool__(self) -> bool:
        return self.is_alive


def alive(constraint_set: ConstraintSet, seen: frozenset[str], remainder: Remainder = NOTHING) -> Verdict:
    """Whether some conforming trace begins with a prefix of the types ``seen`` and then completes ``remainder``.

    The prefix must not have broken an order constraint itself. With nothing remaining it says whether the prefix is
    consistent.
    """
    needed = remainder.types
    occurring = constraint_set.horn_closure(seen | needed)
    if constraint_set.is_ruled_out(occurring):
        return Verdict("occurrence")
    to_come = (occurring - seen) | needed
    if any(constraint_set.blocks(seen, name) for name in to_come):
        return Verdict("blocked")
    return Verdict() if _can_be_ordered(constraint_set, remainder, to_come - needed) else Verdict("order")


def _can_be_ordered(constraint_set: ConstraintSet, remainder: Remainder, required: frozenset[str]) -> bool:
    """Whether the remaining atoms, and one event of each required type, fit into one row."""
    nodes = [atom.type for atom in remainder.atoms] + sorted(required)
    before = [*remainder.before, *(frozenset[int]() for _ in required)]
    graph = {
        node: before[node]
        | {other for other in range(len(nodes)) if other != node and constraint_set.comes_before(nodes[other], name)}
        for node, name in enumerate(nodes)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return True
