"""Tracks the names that a trace has shown, and their consequences, as four sets of names (*bit tables*).

Bit tables serve traces beyond the cap of the monitor automaton (constraint-aware CEP, section 4.3). A state that they
call dead is dead, but they miss some dead states. They ignore rules, NOTs of patterns, and consequences that need
several longer clauses together. They do not see a cycle of orders with more than ``most_in_circle`` names outside the
goal. Without rules, NOTs, longer clauses and symbols, they miss only states that are dead because of such a cycle.

There are no bit tables under ``ties: simultaneous``. There an order constraint takes effect only at the next timestamp,
so blocking a name at once would lose matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from constraints.model import Clause, ConstraintSet, Prior
from constraints.monitoring.bit_conflicts import Node, conflicts, least
from constraints.remainder import NOTHING, Remainder, remainder_of
from constraints.sets import bits_of, members, union
from nfa import Atom, BitGoal, BitRules, EventClass, Query, Seen

ANY = 1 << 0  # a bit that every event shows, and that is blocked after an end event
STRANGER = 1 << 1  # a bit of events of unknown types, blocked from the start if these deviate
_FIRST = 2  # bit index of the first name


class BitState(NamedTuple):
    """The state of a trace, as four sets of names.

    The trace has shown the names in ``seen``. Every conforming continuation has those in ``certain``, which include
    ``seen``. Occurrence constraints rule out ``excluded``. Names in ``blocked`` can never occur again.
    """

    seen: int
    certain: int
    excluded: int
    blocked: int

    @property
    def gone(self) -> int:
        """The names that occur in no conforming continuation."""
        return self.excluded | (self.blocked & ~self.seen)


class BitTables:
    """A constraint set as bit tables: what each name implies by the orders and clauses; see ``nfa.BitGuard``.

    ``watched`` has the longer clauses that are evaluated at each event, or is None for all. Other longer clauses are
    left out, which is sound. A cycle of orders is found if at most ``most_in_circle`` of its names are outside the
    goal. None means no limit.
    """

    def __init__(
        self,
        constraint_set: ConstraintSet,
        *,
        watched: Collection[Clause] | None = None,
        most_in_circle: int | None = 2,
    ) -> None:
        self._set = constraint_set
        self._most = most_in_circle
        self._names = _names(constraint_set)
        self._bits = {name: 1 << place for place, name in enumerate(self._names, _FIRST)}
        self._all = (1 << (len(self._names) + _FIRST)) - 1
        long = [clause for clause in constraint_set.clauses if clause.is_long]
        self._long = [self._placed(clause) for clause in long]
        self._watched = [self._placed(clause) for clause in long if watched is None or clause in watched]
        self._read_clauses(constraint_set)
        self._read_orders(constraint_set)
        self._goals: dict[tuple[tuple[int, ...], tuple[frozenset[int], ...]], BitGoal] = {}
        self._broken: tuple[int, ...] = ()
        self._broken = self.goal(NOTHING).conflicts

    def _read_clauses(self, constraint_set: ConstraintSet) -> None:
        direct = {name: self.mask(constraint_set.implied.get(name, ())) for name in self._names}
        apart = dict.fromkeys(self._names, 0)
        facts = never = 0
        for clause in constraint_set.clauses:
            match sorted(clause.body), clause.head:
                case [], str(head):
                    facts |= self._bits[head]
                case [name], str(head):
                    direct[name] |= self._bits[head]
                case [name], None:
                    never |= self._bits[name]
                case [one, other], None:
                    apart[one] |= self._bits[other]
                    apart[other] |= self._bits[one]
        self._requires = [0] * _FIRST + [self._reached(self._bits[name], direct) for name in self._names]
        self._apart = [0] * _FIRST + [apart[name] for name in self._names]
        self._excludes = [union(self._apart[place] for place in members(needed)) for needed in self._requires]
        self._start = self._settled(BitState(ANY, 0, never, STRANGER), self._closure(facts))

    def _read_orders(self, constraint_set: ConstraintSet) -> None:
        blocks = dict.fromkeys(self._names, 0)
        for constraint in constraint_set.constraints:
            if isinstance(constraint, Prior):
                earlier = constraint.earlier
                stopped = [earlier, *(name for name in self._names if earlier in constraint_set.implied.get(name, ()))]
                blocks[constraint.later] |= self.mask(stopped)
        for end in constraint_set.end_events:
            blocks[end] |= self._all if end in constraint_set.closing_ends else self._of_process(constraint_set)
        self._blocks = [0] * _FIRST + [blocks[name] for name in self._names]
        types = {name: constraint_set.type_of(name) for name in self._names}
        self._alike = {
            event_type: self.mask(name for name in self._names if types[name] == event_type)
            for event_type in types.values()
        }
        later = [0] * len(self._blocks)
        for place, stopped_by in enumerate(self._blocks):
            for other in members(stopped_by):
                later[other] |= 1 << place
        self._later = later
        self._nodes = {
            place: self._node(ANY | self.mask(constraint_set.shown_with((name,))), types[name])
            for place, name in enumerate(self._names, _FIRST)
        }

    def _of_process(self, constraint_set: ConstraintSet) -> int:
        """Return the names of the workflow's own types, as a mask. The workflow's end events block only these names."""
        types = frozenset[str]() if constraint_set.process is None else constraint_set.process.types
        return self.mask(types.intersection(self._names))

    def _node(self, names: int, event_type: str) -> Node:
        return Node(
            later=union(self._later[name] for name in members(names)),
            earlier=union(self._blocks[name] for name in members(names)),
            shown=names,
            alike=self._alike.get(event_type, 0),
        )

    def _placed(self, clause: Clause) -> tuple[int, int | None]:
        return self.mask(clause.body), None if clause.head is None else self._bits[clause.head].bit_length() - 1

    def _reached(self, start: int, direct: dict[str, int]) -> int:
        reached = new = start
        while new:
            new = union(direct[self._names[place - _FIRST]] for place in members(new)) & ~reached
            reached |= new
        return reached

    def mask(self, names: Iterable[str]) -> int:
        """Return the bits of the given names. Names that are in no order and no clause have no bit."""
        return union(self._bits.get(name, 0) for name in names)

    def names(self, mask: int) -> Seen:
        return frozenset(name for name, bit in self._bits.items() if bit & mask)

    def names_in(self, event: EventClass) -> int:
        known = self._set.types | self._set.settings.types
        is_strange = self._set.settings.unknown_types == "deviate" and event.type not in known
        names = self.mask(self._set.shown_with({event.type, *event.symbols}))
        return ANY | names | (STRANGER if is_strange else 0)

    @property
    def rules(self) -> BitRules:
        """The constraint set as masks for the kernels, without the goals of queries.

        The masks are the start state, and the consequences of names, orders and clauses.
        """
        return BitRules(
            start=self._start,
            requires=tuple(self._requires),
            excludes=tuple(self._excludes),
            blocks=tuple(self._blocks),
            clauses=tuple(self._watched),
            broken=self._broken,
        )

    def goals(self, question: Query | Atom) -> tuple[BitGoal, ...]:
        if isinstance(question, Query):
            return tuple(self.goal(remainder_of(question, state)) for state in question.states)
        if question.is_any_type:
            return (BitGoal(needs=ANY),)
        steps = [replace(question, types=(name,)) for name in dict.fromkeys(question.types)]
        return tuple(self.goal(Remainder((step,), (frozenset(),))) for step in steps)

    def goal(self, remainder: Remainder) -> BitGoal:
        atom_names = tuple(ANY | self.mask(self._set.shown_by(atom)) for atom in remainder.atoms)
        key = (tuple(atom_names), tuple(remainder.before))
        if key not in self._goals:
            needs = union(atom_names)
            implies = self._closure((needs | self._start.certain) & ~ANY)
            self._goals[key] = BitGoal(
                needs=needs, implies=implies, conflicts=tuple(self._conflicts(atom_names, remainder, implies))
            )
        return self._goals[key]

    def _conflicts(self, atom_names: tuple[int, ...], remainder: Remainder, implies: int) -> list[int]:
        """Return the minimal sets of names that make a goal impossible if all names of the set become certain.

        ``implies`` has all names that the goal makes certain. If the goal is always impossible, the only set is the
        empty set.
        """
        if self._is_contradictory(implies):
            return [0]
        atoms = [
            self._node(names, atom.type)._replace(is_atom=True, after=bits_of(before))
            for names, atom, before in zip(atom_names, remainder.atoms, remainder.before, strict=True)
        ]
        served = union(atom_names)
        nodes = [*atoms, *(self._nodes[name] for name in members(implies & ~served))]
        candidates = {name: node for name, node in self._nodes.items() if not implies >> name & 1}
        masks = conflicts(nodes, candidates, self._most)
        for body, _ in self._watched:
            missing = body & ~implies
            if missing not in {0, body}:
                together = self._closure(implies | missing)
                nodes = [*atoms, *(self._nodes[name] for name in members(together & ~served))]
                if self._is_contradictory(together) or conflicts(nodes, {}, 0):
                    masks.append(missing)
        return [mask for mask in least(masks) if not any(broken & ~mask == 0 for broken in self._broken)]

    def _is_contradictory(self, names: int) -> bool:
        return any(self._apart[name] & names for name in members(names)) or any(
            head is None and body & ~names == 0 for body, head in self._long
        )

    def _closure(self, mask: int) -> int:
        closed, grown = -1, mask
        while closed != grown:
            closed = grown
            grown |= union(self._requires[name] for name in members(closed))
            grown |= union(self._requires[head] for body, head in self._long if head is not None and body & ~grown == 0)
        return closed

    def _settled(self, state: BitState, certain: int) -> BitState:
        """Add the ``certain`` names and all consequences of the watched clauses to a state."""
        state, before = self._grown(state, certain), None
        while before != state:
            before = state
            for body, head in self._watched:
                missing = body & ~state.certain
                if missing & (missing - 1):
                    continue
                if head is None:
                    state = state._replace(excluded=state.excluded | (missing or body))
                elif missing == 0:
                    state = self._grown(state, self._requires[head])
                elif self._requires[head] & state.gone:
                    state = state._replace(excluded=state.excluded | missing)
        return state

    def _grown(self, state: BitState, certain: int) -> BitState:
        excludes = union(self._excludes[name] for name in members(certain))
        return state._replace(certain=state.certain | certain, excluded=state.excluded | excludes)


def _names(constraint_set: ConstraintSet) -> list[str]:
    names = set(constraint_set.end_events).union(*(constraint.names for constraint in constraint_set.constraints))
    return sorted(constraint_set.shown_with(names))
