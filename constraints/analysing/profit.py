"""Finds constraints that have no effect on any pattern.

If such a constraint is left out, the same pattern states can complete in all visited monitor states. The constraint may
still detect deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from constraints.explaining.rule_endings import event_classes
from constraints.model import ConstraintSet, End, Part, Rule
from constraints.monitoring.monitor import Monitor
from constraints.reasoning.clash import find_clash
from constraints.reasoning.reasoner import Goal, Reasoner
from constraints.remainder import Remainder, remainder_of
from nfa import OTHER, EventClass, MonitorState, Query

STATE_LIMIT = 200
REPLAY_LIMIT = 20_000  # maximum number of deaths whose events are evaluated again without one part


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleParts:
    """The constraints that have no effect on any pattern, in the order of ``ConstraintSet.parts``.

    ``visited`` is the number of examined monitor states. If ``is_complete``, all monitor states were examined and every
    constraint was decided.
    """

    parts: tuple[Part, ...]
    visited: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Death:
    """A pattern state that is dead in the monitor state at index ``visit``: no conforming continuation completes it.

    ``by`` has the names of the event that made the pattern state dead, or is None if this event is not known.
    """

    visit: int
    query: int
    index: int
    by: frozenset[str] | None


def idle_parts(constraint_set: ConstraintSet, queries: Sequence[Query], *, state_limit: int = STATE_LIMIT) -> IdleParts:
    """Find the hand-written constraints that have no effect on any pattern.

    A constraint has no effect if the same pattern states can complete without it. Each constraint is tested alone, and
    the workflow's automaton is ignored. At most ``state_limit`` monitor states are visited, in breadth-first order.
    """
    hand_written = constraint_set.own.parts
    if not hand_written:
        return IdleParts(parts=(), visited=0, is_complete=True)
    constraint_set = constraint_set.in_tables
    walk = _Walk(constraint_set, state_limit)
    search = _Search(constraint_set, queries, walk)
    for death in walk.deaths(queries):
        search.add(death)
    idle = tuple(part for part in hand_written if search.is_idle(part))
    return IdleParts(parts=idle, visited=len(walk.states), is_complete=walk.is_complete and search.replays_left >= 0)


class _Walk:
    def __init__(self, constraint_set: ConstraintSet, limit: int) -> None:
        self._set = constraint_set
        self._limit = limit
        self._monitor = Monitor(constraint_set)
        self.states = [self._monitor.start]
        self._came_by: list[tuple[int, EventClass] | None] = [None]
        self.is_complete = True

    def deaths(self, queries: Sequence[Query]) -> Iterator[_Death]:
        """Yield the pattern states that become dead in each monitor state.

        Dead states of a query with NOTs may become alive again. For such a query, all dead states are yielded.
        """
        events = _events(self._set, queries)
        met = set(self.states)
        lasting = [not any(term.absences for term in query.terms) for query in queries]
        for visit, state in enumerate(self.states):
            came_by = self._came_by[visit]
            for number, query in enumerate(queries):
                dead, by = ~self._monitor.live(state, query), None
                if came_by is not None and lasting[number]:
                    dead = dead & self._monitor.live(self.states[came_by[0]], query)
                    by = self._set.shown_with({came_by[1].type} | came_by[1].symbols)
                yield from (_Death(visit, number, index, by) for index in np.flatnonzero(dead).tolist())
            for event in events:
                after = self._monitor.step(state, event)
                if after is not None and after not in met:
                    if len(met) >= self._limit:
                        self.is_complete = False
                        break
                    met.add(after)
                    self.states.append(after)
                    self._came_by.append((visit, event))

    def word(self, visit: int) -> list[EventClass]:
        events = []
        while (came_by := self._came_by[visit]) is not None:
            visit, event = came_by
            events.append(event)
        return events[::-1]


class _Search:
    """Decides which constraints can be left out without reviving any dead pattern state.

    ``add`` finds a *core* for each death (a pattern state that becomes dead): a minimal set of constraints that causes
    the death. ``is_idle`` examines only the deaths whose cores contain the constraint. Each of them must also be caused
    by the other constraints. A death by rules has no core. For such a death, the monitor replays the events without the
    constraint.
    """

    def __init__(self, constraint_set: ConstraintSet, queries: Sequence[Query], walk: _Walk) -> None:
        self._set = constraint_set
        self._queries = queries
        self._walk = walk
        self._reasoner = Reasoner(constraint_set)
        self._cores: dict[tuple[Part, ...], Reasoner] = {}
        self._deaths: dict[tuple[Part, ...], list[_Death]] = {}
        self._by_name: dict[str, list[tuple[Part, ...]]] = {}
        self._by_rules: list[_Death] = []
        self._remainders: dict[tuple[int, int], Remainder] = {}
        self._goals: dict[tuple[Reasoner, int, int], Goal] = {}
        self.replays_left = REPLAY_LIMIT

    def add(self, death: _Death) -> None:
        if self._lives(self._reasoner, death):
            self._by_rules.append(death)
            return
        for core in self._cores if death.by is None else self._citing(death.by):
            if not self._lives(self._cores[core], death):
                self._deaths[core].append(death)
                return
        remainder, seen = self._remainder(death), self._walk.states[death.visit].seen
        clash = find_clash(_about(self._set, seen, remainder), seen, remainder)
        assert clash is not None, f"{death} has no reason"
        self._cores[clash.constraints] = Reasoner(self._set.of_parts(clash.constraints))
        self._deaths[clash.constraints] = [death]
        for name in dict.fromkeys(name for part in clash.constraints for name in part.names):
            self._by_name.setdefault(name, []).append(clash.constraints)

    def _citing(self, names: frozenset[str]) -> Iterator[tuple[Part, ...]]:
        for name in sorted(names):
            yield from self._by_name.get(name, ())

    def is_idle(self, part: Part) -> bool:
        """Check whether all deaths are also caused by the other constraints, so that a constraint has no effect.

        The result is False if the search would need more than ``REPLAY_LIMIT`` replays of deaths by rules.
        """
        if not isinstance(part, Rule):
            citing = [death for core, deaths in self._deaths.items() if part in core for death in deaths]
            if citing:
                without = Reasoner(self._set.of_parts(other for other in self._set.parts if other != part))
                if any(self._lives(without, death) for death in citing):
                    return False
        return not self._by_rules or self._is_idle_among_rules(part)

    def _is_idle_among_rules(self, part: Part) -> bool:
        without = Monitor(self._set.of_parts(other for other in self._set.parts if other != part))
        states: dict[int, MonitorState] = {}
        for death in self._by_rules:
            self.replays_left -= 1
            if self.replays_left < 0:
                return False
            if death.visit not in states:
                states[death.visit] = _replayed(without, self._walk.word(death.visit))
            if without.live(states[death.visit], self._queries[death.query])[death.index]:
                return False
        return True

    def _lives(self, reasoner: Reasoner, death: _Death) -> bool:
        key = (reasoner, death.query, death.index)
        if key not in self._goals:
            self._goals[key] = reasoner.goal(self._remainder(death))
        return reasoner.is_alive(reasoner.mask(self._walk.states[death.visit].seen), self._goals[key])

    def _remainder(self, death: _Death) -> Remainder:
        key = (death.query, death.index)
        if key not in self._remainders:
            query = self._queries[death.query]
            self._remainders[key] = remainder_of(query, query.states[death.index])
        return self._remainders[key]


def _replayed(monitor: Monitor, word: Sequence[EventClass]) -> MonitorState:
    state = monitor.start
    for event in word:
        after = monitor.step(state, event)
        assert after is not None, "what more constraints allow, fewer allow"
        state = after
    return state


def _about(constraint_set: ConstraintSet, seen: frozenset[str], remainder: Remainder) -> ConstraintSet:
    """Return the constraints that may make ``remainder`` impossible after the names ``seen``.

    All end events are included. Orders and clauses are included if all their names are seen, needed by the remainder's
    atoms, or derived from such names.
    """
    needed = frozenset[str]().union(*(constraint_set.shown_by(atom) for atom in remainder.atoms))
    names = constraint_set.horn_closure(seen | needed)
    return constraint_set.of_parts(
        part
        for part in constraint_set.parts
        if isinstance(part, End) or (not isinstance(part, Rule) and names >= set(part.names))
    )


def _events(constraint_set: ConstraintSet, queries: Sequence[Query]) -> list[EventClass]:
    """Return the event classes to try: each type without symbols, with each single symbol, and with all its symbols.

    ``OTHER`` is added.
    """
    classes = event_classes(constraint_set, constraint_set.types.union(*(query.types for query in queries)))
    by_type: dict[str, frozenset[str]] = {}
    for event in classes:
        if event.symbols:
            by_type[event.type] = by_type.get(event.type, frozenset()) | event.symbols
    classes += [EventClass(type=name, symbols=symbols) for name, symbols in by_type.items()]
    return list(dict.fromkeys([*classes, EventClass(type=OTHER)]))
