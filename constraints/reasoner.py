"""The decision of ``constraints.reference`` on bit masks: a type is a bit of a Python integer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from constraints.model import ConstraintSet, Prior
from constraints.remainder import Remainder


class _Node(NamedTuple):
    type: int  # one bit
    atom: int  # one bit, or none for a type that is merely required
    before: int  # atoms that come first


class Goal(NamedTuple):
    """A remainder on masks; made by ``Reasoner.goal``."""

    needed: int
    nodes: tuple[_Node, ...]


class Reasoner:
    """Answers for one constraint set; everything that depends on the set alone is computed once."""

    def __init__(self, constraint_set: ConstraintSet) -> None:
        self._bits: dict[str, int] = {}
        self._earlier: dict[int, int] = {}
        self._implied: dict[int, int] = {}
        self._excluded: dict[int, int] = {}
        self._long: list[tuple[int, int]] = []  # body, head with all it implies
        self._forbidden: list[int] = []  # bodies of three types and more
        for constraint in constraint_set.constraints:
            if isinstance(constraint, Prior):
                later = self._bit(constraint.later)
                self._earlier[later] = self._earlier.get(later, 0) | self._bit(constraint.earlier)
        self._ends = self.mask(constraint_set.end_events)
        for end in _bits(self._ends):
            self._earlier[end] = -1
        self._read_clauses(constraint_set)

    def _read_clauses(self, constraint_set: ConstraintSet) -> None:
        direct: dict[int, int] = {}
        definite: list[tuple[int, int]] = []
        for clause in constraint_set.clauses:
            body = self.mask(clause.body)
            if clause.head is not None and len(clause.body) == 1:
                direct[body] = direct.get(body, 0) | self._bit(clause.head)
            elif clause.head is not None:
                definite.append((body, self._bit(clause.head)))
            elif len(clause.body) <= 2:
                for one in _bits(body):
                    self._excluded[one] = self._excluded.get(one, 0) | (body & ~one or one)
            else:
                self._forbidden.append(body)
        for one in direct:
            self._implied[one] = _reachable(one, direct)
        self._long = [(body, self._implied.get(head, head)) for body, head in definite]

    def _bit(self, name: str) -> int:
        return self._bits.setdefault(name, 1 << len(self._bits))

    def mask(self, names: Iterable[str]) -> int:
        """The bits of some types; types not met before get new ones."""
        mask = 0
        for name in names:
            mask |= self._bit(name)
        return mask

    def names(self, mask: int) -> frozenset[str]:
        """The types whose bits are set."""
        return frozenset(name for name, one in self._bits.items() if one & mask)

    def goal(self, remainder: Remainder) -> Goal:
        """The remainder on masks."""
        nodes = tuple(
            _Node(self._bit(atom.type), 1 << index, sum(1 << other for other in before))
            for index, (atom, before) in enumerate(zip(remainder.atoms, remainder.before, strict=True))
        )
        return Goal(self.mask(remainder.types), nodes)

    def blocked(self, seen: int) -> int:
        """The types that can no longer occur, by order alone; all bits after an end event."""
        if seen & self._ends:
            return -1
        blocked = 0
        for one in _bits(seen):
            blocked |= self._earlier.get(one, 0)
        return blocked

    def is_alive(self, seen: int, goal: Goal) -> bool:
        """``reference.alive`` without the reason."""
        occurring = self.closure(seen | goal.needed)
        if self._is_ruled_out(occurring):
            return False
        to_come = (occurring & ~seen) | goal.needed
        if to_come & self.blocked(seen):
            return False
        return self.can_be_ordered(goal, to_come & ~goal.needed)

    def closure(self, mask: int) -> int:
        """``ConstraintSet.horn_closure``."""
        closed = mask
        for one in _bits(mask):
            closed |= self._implied.get(one, 0)
        is_growing = bool(self._long)
        while is_growing:
            grown = closed
            for body, head in self._long:
                if body & ~grown == 0:
                    grown |= head
            is_growing = grown != closed
            closed = grown
        return closed

    def _is_ruled_out(self, occurring: int) -> bool:
        pairs = any(self._excluded.get(one, 0) & occurring for one in _bits(occurring))
        return pairs or any(body & ~occurring == 0 for body in self._forbidden)

    def can_be_ordered(self, goal: Goal, required: int) -> bool:
        """Whether the goal's atoms and one event of each required type fit into one row.

        They do if rounds of taking every node that nothing waiting comes before take them all.
        """
        waiting = [*goal.nodes, *(_Node(one, 0, 0) for one in _bits(required))]
        while waiting:
            atoms = once = twice = 0
            for node in waiting:
                atoms |= node.atom
                twice |= once & node.type
                once |= node.type
            stuck = [
                node
                for node in waiting
                if node.before & atoms or self._earlier.get(node.type, 0) & (twice | once & ~node.type)
            ]
            if len(stuck) == len(waiting):
                return False
            waiting = stuck
        return True


def _bits(mask: int) -> Iterator[int]:
    while mask:
        one = mask & -mask
        yield one
        mask ^= one


def _reachable(start: int, direct: dict[int, int]) -> int:
    reached, new = start, start
    while new:
        found = 0
        for one in _bits(new):
            found |= direct.get(one, 0)
        new = found & ~reached
        reached |= new
    return reached
