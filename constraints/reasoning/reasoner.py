"""The decision, on bit masks, whether a trace that has shown the given names can still complete a remainder.

A name is a bit of a Python integer. Source: constraint-aware CEP, section 3.1, theorem 1; with symbols section 4.5,
with NOT section 6.3, with events of equal timestamps section 7. ``tests/references/alive.py`` is the executable
meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import product
from math import prod
from typing import Literal, NamedTuple, TypeAlias

from constraints.model import ConstraintSet, End, Part, Prior, Rule, clause_of
from constraints.remainder import Gap, Remainder, single
from constraints.sets import bits_of
from nfa import Atom

ALL_NAMES = -1  # as a mask: every bit is set
MAX_CHOICES = 256  # most placements of events that gaps forbid; with more, they are assumed to fit

Reason: TypeAlias = Literal["occurrence", "blocked", "order", "absence"]
"""Why no conforming trace completes a remainder: a clause excludes the needed types; the last chance of a needed type
has passed; the types cannot be ordered; or they can be ordered only with a forbidden event in a gap."""

_Masks: TypeAlias = tuple[str, int, int]


class _Node(NamedTuple):
    shows: int  # names that the event shows
    type: int  # one bit
    atom: int  # one bit, or 0 for a required event that is not an atom
    before: int  # atoms that must come before it


class _Gap(NamedTuple):
    type: int  # one bit
    since: int  # atoms; the gap stays free of the forbidden event if one of them follows the event
    until: int  # atoms; the gap stays free of the forbidden event if one of them precedes the event
    edges: int  # atoms that open or close the gap
    is_leading: bool  # open since the start of the trace


class Goal(NamedTuple):
    """A remainder (the atoms that must still occur) as masks of names.

    It is valid only for the ``Reasoner`` that built it.
    """

    needed: int
    nodes: tuple[_Node, ...]
    gaps: tuple[_Gap, ...] = ()


class Reasoner:
    """Decides which continuations conform to one constraint set.

    Everything that depends on the set alone is computed once.
    """

    def __init__(self, constraint_set: ConstraintSet) -> None:
        self._set = constraint_set
        self._bits: dict[str, int] = {}
        self._atoms: dict[Atom, int] = {}
        self._masks: dict[Part, _Masks] = {}
        self._shows: dict[int, int] = {}  # all names of an event that shows a symbol, the symbol included
        self._type: dict[int, int] = {}  # event types of the symbols
        self._impossible: dict[int, Goal] = {}
        for name, implied in constraint_set.implied.items():
            symbol_bit = self._bit(name)
            self._type[symbol_bit] = self._bit(constraint_set.type_of(name))
            self._shows[symbol_bit] = symbol_bit | self.mask(implied)
        self._read(constraint_set.parts)

    def with_only(self, parts: Iterable[Part]) -> Reasoner:
        """Return a reasoner for the given parts of the set. Masks and goals are valid for both reasoners."""
        reasoner = copy(self)
        reasoner._impossible = {}
        reasoner._read(parts)
        return reasoner

    def _read(self, parts: Iterable[Part]) -> None:
        self._earlier: dict[int, int] = {}
        self._excluded: dict[int, int] = {}
        self._forbidden: list[int] = []  # bodies with at least three names
        self._direct = dict(self._shows)
        self._implied: dict[int, int] = {}  # all requirements of names, computed on demand
        self._ends = 0
        definite: list[tuple[int, int]] = []
        for part in parts:
            kind, mask, second_mask = self._masks_of(part)
            if kind == "prior":
                self._earlier[second_mask] = self._earlier.get(second_mask, 0) | mask
            elif kind == "end":
                self._ends |= mask
            elif kind == "require":
                self._direct[mask] = self._direct.get(mask, 0) | second_mask
            elif kind == "implication":
                definite.append((mask, second_mask))
            elif kind == "exclusive":
                for bit in _bits(mask):
                    self._excluded[bit] = self._excluded.get(bit, 0) | (mask & ~bit or bit)
            elif kind == "not_together":
                self._forbidden.append(mask)
        for end in _bits(self._ends):
            self._earlier[end] = ALL_NAMES
        self._long = [(body, self._implied_by(head)) for body, head in definite]  # body, head with all it implies

    def _masks_of(self, part: Part) -> _Masks:
        """Return the names of a part as two masks: earlier and later names of an order, or body and head of a clause.

        They are 0 for ignored parts.
        """
        if part not in self._masks:
            self._masks[part] = self._new_masks(part)
        return self._masks[part]

    def _new_masks(self, part: Part) -> _Masks:
        if isinstance(part, Rule):
            return "", 0, 0
        if isinstance(part, Prior):
            return "prior", self._bit(part.earlier), self._bit(part.later)
        if isinstance(part, End):
            if part.type in self._set.closing_ends:
                return "end", self._bit(part.type), 0
            types = frozenset({part.type}) if self._set.process is None else self._set.process.types
            return "prior", self.mask(types), self._bit(part.type)
        clause = clause_of(part, assumes_completion=self._set.settings.completion == "assumed")
        if clause is None:
            return "", 0, 0
        body = self.mask(clause.body)
        if clause.head is not None:
            return "require" if len(clause.body) == 1 else "implication", body, self._bit(clause.head)
        return "exclusive" if len(clause.body) <= 2 else "not_together", body, 0

    def _implied_by(self, bit: int) -> int:
        if bit not in self._direct:
            return bit
        if bit not in self._implied:
            self._implied[bit] = _reachable(bit, self._direct)
        return self._implied[bit]

    def _bit(self, name: str) -> int:
        return self._bits.setdefault(name, 1 << len(self._bits))

    def mask(self, names: Iterable[str]) -> int:
        """Return the bits of the given names; new names get new bits."""
        mask = 0
        for name in names:
            mask |= self._bit(name)
        return mask

    def names(self, mask: int) -> frozenset[str]:
        return frozenset(name for name, bit in self._bits.items() if bit & mask)

    def goal(self, remainder: Remainder) -> Goal:
        nodes = tuple(
            _Node(self._shown_by(atom), self._bit(atom.type), 1 << index, bits_of(before))
            for index, (atom, before) in enumerate(zip(remainder.atoms, remainder.before, strict=True))
        )
        needed = 0
        for node in nodes:
            needed |= node.shows
        return Goal(needed, nodes, tuple(self._gap(gap, remainder) for gap in remainder.gaps))

    def _shown_by(self, atom: Atom) -> int:
        if atom not in self._atoms:
            self._atoms[atom] = self.mask(self._set.shown_by(atom))
        return self._atoms[atom]

    def _gap(self, gap: Gap, remainder: Remainder) -> _Gap:
        since = gap.since or frozenset()
        last = since.difference(*(remainder.before[other] for other in since))
        first = frozenset(atom for atom in gap.until if not remainder.before[atom] & gap.until)
        return _Gap(self._bit(gap.type), bits_of(last), bits_of(first), bits_of(gap.edges), gap.since is None)

    def blocked(self, seen: int) -> int:
        """Return the names that can no longer occur by order constraints and end events alone.

        After a hand-written end event, these are all names.
        """
        if seen & self._ends:
            return ALL_NAMES
        blocked = 0
        for bit in _bits(seen):
            blocked |= self._earlier.get(bit, 0)
        return blocked

    def is_alive(self, seen: int, goal: Goal, settled: int | None = None) -> bool:
        """Check whether some conforming trace first shows the names ``seen`` and then completes the goal.

        The caller ensures that the seen events satisfy the order constraints. ``seen`` includes implied names, and
        rules are ignored. ``settled`` is None if events with equal timestamps are ordered. Otherwise it has the names
        shown before the time of the last event. With an empty goal, the result is whether the seen events are
        consistent.

        The result False is always right. The result True is always right if ``settled`` is None and the set has no
        symbols. Otherwise True may mean "unknown".
        """
        return self.reason(seen, goal, settled) is None

    def reason(self, seen: int, goal: Goal, settled: int | None = None) -> Reason | None:
        """Return the reason why a goal is not alive, or None if it is alive."""
        occurring = self.closure(seen | goal.needed)
        if self._is_ruled_out(occurring):
            return "occurrence"
        past, is_log = seen if settled is None else settled, settled is None
        required = self.shown_with(occurring & ~seen)
        if (required | goal.needed) & self.blocked(past):
            return "blocked"
        if any(gap.is_leading and gap.type & past for gap in goal.gaps):
            return "absence"
        required &= ~goal.needed
        if self.can_be_ordered(goal, required, is_log=is_log):
            return None
        is_ordered = goal.gaps and self.can_be_ordered(goal._replace(gaps=()), required, is_log=is_log)
        return "absence" if is_ordered else "order"

    def impossible(self, seen: int, settled: int | None = None) -> int:
        """Return the names of the set that no later event can show."""
        impossible = 0
        for name in self._set.names:
            bit = self._bit(name)
            if bit not in self._impossible:
                self._impossible[bit] = self.goal(single(name, self._set.symbols))
            if not self.is_alive(seen, self._impossible[bit], settled):
                impossible |= bit
        return impossible

    def shown_with(self, mask: int) -> int:
        if self._shows:
            for bit in _bits(mask):
                mask |= self._shows.get(bit, 0)
        return mask

    def closure(self, mask: int) -> int:
        closed = mask
        for bit in _bits(mask):
            closed |= self._implied_by(bit)
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
        pairs = any(self._excluded.get(bit, 0) & occurring for bit in _bits(occurring))
        return pairs or any(body & ~occurring == 0 for body in self._forbidden)

    def can_be_ordered(self, goal: Goal, required: int, *, is_log: bool = True) -> bool:
        """Check whether the goal's atoms and the required events have an order with no forbidden event in a gap.

        There is one required event for each name in ``required``. If ``is_log``, no two events are simultaneous.
        """
        nodes = [
            *goal.nodes,
            *(_Node(self._shows.get(bit, bit), self._type.get(bit, bit), 0, 0) for bit in _bits(required)),
        ]
        return self._fit(nodes, goal.gaps, is_log)

    def _fit(self, nodes: Sequence[_Node], gaps: Iterable[_Gap], is_log: bool) -> bool:
        strict = [node.before for node in nodes]
        ordered = self._orders(nodes)
        choices = list(_choices(nodes, gaps, is_log))
        if prod(len(choice) for choice in choices if len(choice) > 1) > MAX_CHOICES:
            choices = [choice for choice in choices if len(choice) == 1]
        for placement in product(*choices):
            before = list(ordered)
            for place, earlier in placement:
                before[place] |= earlier
            if _is_row(
                [fixed | constrained for fixed, constrained in zip(strict, before, strict=True)], strict, is_log
            ):
                return True
        return False

    def _orders(self, nodes: Sequence[_Node]) -> list[int]:
        """Return, for each node, the nodes that constraints order before it.

        Nodes that may be the same event are unordered.
        """
        showing: dict[int, int] = {}
        of_type: dict[int, int] = {}
        present = served = 0
        for place, node in enumerate(nodes):
            present |= node.shows
            served |= (1 << place) if node.atom else 0
            of_type[node.type] = of_type.get(node.type, 0) | 1 << place
            for name in _bits(node.shows):
                showing[name] = showing.get(name, 0) | 1 << place
        orders = []
        # Names, and the nodes that show them. The next node often has the same names and a few more.
        blocking = before = 0
        for place, node in enumerate(nodes):
            earlier = 0
            for name in _bits(node.shows):
                earlier |= self._earlier.get(name, 0)
            earlier &= present
            if blocking & ~earlier:
                blocking = before = 0
            for name in _bits(earlier & ~blocking):
                before |= showing[name]
            blocking = earlier
            maybe_same = of_type[node.type] & ~(served if node.atom else 0) | 1 << place
            orders.append(before & ~maybe_same)
        return orders


def _choices(nodes: Sequence[_Node], gaps: Iterable[_Gap], is_log: bool) -> Iterator[list[tuple[int, int]]]:
    """Yield, for each gap and each event of its forbidden type, the ways to place the event outside the gap.

    Each way is one more order: a pair of a node's index and the node (as a bit) before it. The event precedes an atom
    that opens the gap, or follows an atom that closes the gap. A required event is skipped if the match binds its type,
    because the event may be one of the match's own events.
    """
    served = 0
    for node in nodes:
        served |= node.type if node.atom else 0
    for gap in gaps:
        if is_log or gap.since or gap.is_leading:
            for place, node in enumerate(nodes):
                is_taken = not node.atom and node.type & served
                if node.type == gap.type and not is_taken and not node.atom & gap.edges:
                    leaving = [(bit.bit_length() - 1, 1 << place) for bit in _bits(gap.since)]
                    yield leaving + [(place, bit) for bit in _bits(gap.until)]


def _is_row(before: Sequence[int], strict: Sequence[int], is_log: bool) -> bool:
    """Check whether all nodes can be put in a row. ``before`` has the predecessors of each node, as bits.

    If ``is_log``, no cycle is allowed. Otherwise nodes on a cycle may be simultaneous, unless one of its edges is
    strict.
    """
    if not is_log:
        earlier = _transitive(before)
        return not any(
            earlier[bit.bit_length() - 1] >> node & 1 for node, row in enumerate(strict) for bit in _bits(row)
        )
    done = 0
    for start in range(len(before)):
        path, on_path = [start], 1 << start
        while path:
            node = path[-1]
            ahead = before[node] & ~done
            if ahead & on_path:
                return False
            if ahead:
                path.append((ahead & -ahead).bit_length() - 1)
                on_path |= ahead & -ahead
            else:
                path.pop()
                on_path &= ~(1 << node)
                done |= 1 << node
    return True


def _transitive(before: Sequence[int]) -> list[int]:
    closed = list(before)
    for middle, middle_bit in enumerate(1 << node for node in range(len(closed))):
        for node, row in enumerate(closed):
            if row & middle_bit:
                closed[node] = row | closed[middle]
    return closed


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest
        mask ^= lowest


def _reachable(start: int, direct: dict[int, int]) -> int:
    reached, new = start, start
    while new:
        targets = 0
        for bit in _bits(new):
            targets |= direct.get(bit, 0)
        new = targets & ~reached
        reached |= new
    return reached
