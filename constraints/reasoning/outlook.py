"""Decides how a trace may continue under order constraints, occurrence constraints and rules together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from constraints.model import ConstraintSet
from constraints.reasoning.reasoner import Goal, Reasoner
from constraints.remainder import NOTHING, Remainder, single
from constraints.rules.product import RuleProduct
from nfa import Atom, EventClass, MonitorState
from streams import Ties

MEMORY_LIMIT = 65_536
MAX_JOINT = 6  # maximum number of atoms and required types that are decided together with rules


class Outlook:
    """Advances monitor states and decides which continuations are still possible.

    ``MonitorState.seen`` has the names of order and occurrence constraints that the trace has shown, and the types of
    the symbols among them. ``places`` are the states of the rules. If events with equal timestamps are unordered, order
    constraints take effect when time advances. ``alphabet`` has all types of events in conforming traces, or is None if
    any type is allowed. If ``is_exact``, all states that are dead by order and occurrence constraints are found.
    Otherwise some may be missed.
    """

    def __init__(self, constraint_set: ConstraintSet, ties: Ties = "log") -> None:
        settings = constraint_set.settings
        self.constraint_set = constraint_set
        self.ties: Ties = ties
        self.reasoner = Reasoner(constraint_set)
        self.rules = RuleProduct(constraint_set)
        self.start = MonitorState(settled=None if ties == "log" else frozenset(), places=self.rules.start)
        self.alphabet = constraint_set.types | settings.types if settings.unknown_types == "deviate" else None
        self.assumes_completion = settings.completion == "assumed"
        self.is_exact = ties == "log" and not constraint_set.symbols
        self._names = constraint_set.names
        self._ruled = frozenset(name for rule in constraint_set.rules for name in rule.names)
        self._remembered = constraint_set.end_events.union(*(part.names for part in constraint_set.constraints))
        self._nothing = self.reasoner.goal(NOTHING)
        self._impossible: dict[tuple[frozenset[str], frozenset[str] | None], frozenset[str]] = {}

    def names_of(self, event: EventClass) -> frozenset[str]:
        """Return the names that an event shows, including implied ones."""
        return self.constraint_set.shown_with(({event.type} | event.symbols) & self._names)

    def advance(self, state: MonitorState, event: EventClass) -> MonitorState:
        """Return the state after one more event, even if the event breaks constraints."""
        names = self.names_of(event)
        return MonitorState(
            seen=state.seen | self.constraint_set.shown_with(names & self._remembered),
            settled=state.seen if event.is_later and state.settled is not None else state.settled,
            places=self.rules.step(state.places, names),
        )

    def moved(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """Return the state after one more event, or None if the event itself is impossible there."""
        is_impossible = self.is_too_late(state, event) or self.is_unknown(event)
        return None if is_impossible else self.advance(state, event)

    def past(self, state: MonitorState, event: EventClass) -> frozenset[str]:
        """Return the names that were shown before ``event``.

        If events with equal timestamps are unordered, only names that were shown at an earlier time are included.
        """
        return state.seen if state.settled is None or event.is_later else state.settled

    def is_too_late(self, state: MonitorState, event: EventClass) -> bool:
        """Check whether order constraints alone, or the end of the trace, exclude an event."""
        past = self.past(state, event)
        if past & self.constraint_set.closing_ends:
            return True
        reasoner = self.reasoner
        return bool(reasoner.mask(self.names_of(event)) & reasoner.blocked(reasoner.mask(past)))

    def is_unknown(self, event: EventClass) -> bool:
        """Check whether the event deviates because its type is unknown. Without an ``alphabet``, no type is unknown."""
        return self.alphabet is not None and event.type not in self.alphabet

    def is_over(self, state: MonitorState) -> bool:
        return bool((state.seen if state.settled is None else state.settled) & self.constraint_set.closing_ends)

    def is_consistent(self, state: MonitorState) -> bool:
        """Check whether some conforming trace begins with the events so far.

        The result is valid only if none of these events was too late (``is_too_late``).
        """
        return self.can_complete(state, NOTHING, self._nothing)

    def can_complete(self, state: MonitorState, remainder: Remainder, goal: Goal | None = None) -> bool:
        """Check whether some conforming continuation completes a remainder (the atoms that must still occur).

        ``goal`` is the remainder's goal, if known.
        """
        return self.keeps_constraints(state, self.reasoner.goal(remainder) if goal is None else goal) and (
            self.keeps_rules(state, remainder)
        )

    def keeps_constraints(self, state: MonitorState, goal: Goal) -> bool:
        """Check whether order and occurrence constraints allow some continuation that completes the goal."""
        seen, settled = self.masks(state)
        return self.reasoner.is_alive(seen, goal, settled)

    def masks(self, state: MonitorState) -> tuple[int, int | None]:
        """Return the names ``seen`` and ``settled`` of a state as the reasoner's masks."""
        reasoner = self.reasoner
        return reasoner.mask(state.seen), None if state.settled is None else reasoner.mask(state.settled)

    def keeps_rules(self, state: MonitorState, remainder: Remainder) -> bool:
        """Check whether the rules allow some continuation that completes the remainder.

        Such a continuation also respects the names that order and occurrence constraints exclude or require.
        """
        return not self.rules.rules or (
            self._keeps_rules(state, remainder)
            and all(self._keeps_rules(state, more) for more in self._with_required(state, remainder))
        )

    def _keeps_rules(self, state: MonitorState, remainder: Remainder) -> bool:
        impossible = self.impossible(state)
        if impossible is not None:
            impossible |= self._incompatible(state, remainder)
        in_order = remainder if state.settled is None else remainder.positives  # rules need the log order
        return self.rules.can_complete(state.places, in_order, impossible, assumes_completion=self.assumes_completion)

    def _incompatible(self, state: MonitorState, remainder: Remainder) -> frozenset[str]:
        """Return the names of rules that make the remainder impossible if a further event shows them.

        If an atom accepts the type of a name, the name is not returned, because the atom's event may show the name.
        """
        needed = (
            self.constraint_set.names
            if not remainder.atoms
            else frozenset[str]().union(*(self.constraint_set.shown_by(atom) for atom in remainder.atoms))
        )
        types = {event_type for atom in remainder.atoms for event_type in atom.types}
        incompatible = set()
        for name in self._ruled - needed:
            if self.constraint_set.type_of(name) in types:
                continue
            step = single(name, self.constraint_set.symbols)
            joint = replace(remainder, atoms=(*remainder.atoms, *step.atoms), before=(*remainder.before, frozenset()))
            if not self.keeps_constraints(state, self.reasoner.goal(joint)):
                incompatible.add(name)
        return frozenset(incompatible)

    def _with_required(self, state: MonitorState, remainder: Remainder) -> Iterator[Remainder]:
        """Yield the remainder with one more atom for each name that order and occurrence constraints require.

        Nothing is yielded if no name is required, if there would be over ``MAX_JOINT`` atoms, or if the outlook is not
        exact.
        """
        constraint_set, needed = self.constraint_set, remainder.types
        required = sorted(constraint_set.horn_closure(state.seen | needed) - state.seen - needed)
        size = len(remainder.atoms)
        if self.is_exact and required and size + len(required) <= MAX_JOINT:
            steps = [Atom((name,), name) for name in required]
            joint = Remainder((*remainder.atoms, *steps), (*remainder.before, *(frozenset[int]() for _ in steps)))
            yield _ordered(constraint_set, joint)

    def impossible(self, state: MonitorState) -> frozenset[str] | None:
        """Return the names that no later event can show by order and occurrence constraints.

        The result is None if the trace is over, so that no event can follow.
        """
        if self.is_over(state):
            return None
        key = state.seen, state.settled
        if key not in self._impossible:
            if len(self._impossible) >= MEMORY_LIMIT:
                self._impossible.clear()
            self._impossible[key] = self.reasoner.names(self.reasoner.impossible(*self.masks(state)))
        return self._impossible[key]


def _ordered(constraint_set: ConstraintSet, remainder: Remainder) -> Remainder:
    before = [set(earlier) for earlier in remainder.before]
    for late, later in enumerate(remainder.atoms):
        for early, earlier in enumerate(remainder.atoms):
            if early != late and constraint_set.comes_before(earlier.type, later.type):
                before[late].add(early)
    for _ in before:
        before = [earlier.union(*(before[index] for index in earlier)) for earlier in before]
    return replace(remainder, before=tuple(map(frozenset, before)))
