"""Finds early terminations that rules cause, by walking through the states of a monitor and of a pattern together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from constraints.explaining.explanation import Explanation, explain_impossible
from constraints.model import ConstraintSet
from constraints.monitoring.monitor import Monitor
from constraints.reasoning.outlook import Outlook
from constraints.remainder import remainder_of
from nfa import OTHER, EventClass, MonitorState, PatternState, Query

WALK_LIMIT = 500

_Place: TypeAlias = tuple[MonitorState, int]  # a monitor state, and the index of a pattern state


def rule_endings(
    query: Query, constraint_set: ConstraintSet, limit: int = WALK_LIMIT
) -> Iterator[tuple[PatternState, Explanation]]:
    """Find the events at which rules terminate partial matches, for each pattern state.

    Each event is listed once, after the shortest prefix. At most ``limit`` monitor states are visited.
    """
    if not constraint_set.rules or not query.states:
        return
    outlook, walk = Outlook(constraint_set), _Walk(query, constraint_set, limit)
    remainders = [remainder_of(query, state) for state in query.states]
    reported: set[tuple[int, EventClass]] = set()
    for before, index, event, after in walk.endings():
        if (index, event) not in reported and outlook.keeps_constraints(
            after, outlook.reasoner.goal(remainders[index])
        ):
            explanation = explain_impossible(outlook, remainders[index], after, event)
            assert explanation is not None, f"{before} to {after} ends it"
            reported.add((index, event))
            yield query.states[index], explanation


class _Walk:
    """A breadth-first walk over the pairs of a monitor state and a pattern state that a partial match can reach."""

    def __init__(self, query: Query, constraint_set: ConstraintSet, limit: int) -> None:
        self._query = query
        self._monitor = Monitor(constraint_set.in_tables)
        self._limit = limit
        types = constraint_set.types | query.types
        self._events = [*event_classes(constraint_set, types), EventClass(type=OTHER)]
        self._index_of = {state: index for index, state in enumerate(query.states)}
        self._steps: dict[tuple[MonitorState, EventClass], MonitorState | None] = {}
        self._visited = {self._monitor.start}

    def endings(self) -> Iterator[tuple[MonitorState, int, EventClass, MonitorState]]:
        """Yield each early termination: monitor state before, index of pattern state, event, monitor state after."""
        start = self._monitor.live(self._monitor.start, self._query)
        waiting: dict[_Place, None] = {
            (self._monitor.start, index): None
            for index, state in enumerate(self._query.states)
            if not state.bound and start[index]
        }
        met = set(waiting)
        while waiting:
            following: dict[_Place, None] = {}
            for before, index in waiting:
                for event in self._events:
                    after = self._step(before, event)
                    if after is None:
                        continue
                    live = self._monitor.live(after, self._query)
                    if not live[index]:
                        yield before, index, event, after
                    for other in self._reached(index, event):
                        if live[other] and (after, other) not in met:
                            met.add((after, other))
                            following[after, other] = None
            waiting = following

    def _step(self, before: MonitorState, event: EventClass) -> MonitorState | None:
        """Return the monitor state after an event, or None.

        It is None if the trace deviates at the event, or if the limit of states is reached.
        """
        if (before, event) not in self._steps:
            after = self._monitor.step(before, event)
            if after is not None and after not in self._visited:
                if len(self._visited) >= self._limit:
                    return None
                self._visited.add(after)
            self._steps[before, event] = after
        return self._steps[before, event]

    def _reached(self, index: int, event: EventClass) -> Iterator[int]:
        """Yield the indices of the pattern states after an event. ``index`` is first: the event may stay unbound."""
        yield index
        state = self._query.states[index]
        term = self._query.terms[state.term]
        for atom, step in enumerate(term.atoms):
            if atom not in state.bound and step.type == event.type and term.before[atom] <= state.bound:
                other = self._index_of.get(PatternState(state.term, state.bound | {atom}))
                if other is not None:
                    yield other


def event_classes(constraint_set: ConstraintSet, types: Iterable[str]) -> list[EventClass]:
    """Return the event classes to try: each type without symbols, and with each of its symbols."""
    plain = [EventClass(type=name) for name in sorted(types)]
    showing = [
        EventClass(type=symbol.type, symbols=constraint_set.shown_with({name}) - {symbol.type})
        for name, symbol in sorted(constraint_set.symbols.items())
    ]
    return [*plain, *showing]
