"""The guard that reasons from constraints: how a trace's monitor moves, and what can still complete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constraints.model import ConstraintSet
from constraints.reasoner import Goal, Reasoner
from constraints.remainder import NOTHING, remainder_of
from nfa import Query, Seen


@dataclass(frozen=True, slots=True)
class _Plan:
    """The states of one query, ready to be asked about.

    Attributes:
        goals: What each state needs.
        extensions: The states that bind one atom more; all are alive where the state is.
    """

    goals: tuple[Goal, ...]
    extensions: tuple[tuple[int, ...], ...]


class Monitor:
    """Guard of one constraint set (constraint-aware CEP, section 4.2); see ``nfa.Guard``.

    A monitor state is the set of seen types that some constraint names. After an end event every further event
    deviates. Answers are remembered; the memory is emptied when it holds ``memory_limit`` rows.
    """

    def __init__(self, constraint_set: ConstraintSet, *, memory_limit: int = 65_536) -> None:
        self._types = constraint_set.types
        self._end_events = constraint_set.end_events
        self._reasoner = Reasoner(constraint_set)
        self._nothing = self._reasoner.goal(NOTHING)
        self._memory_limit = memory_limit
        self._plans: dict[Query, _Plan] = {}
        self._rows: dict[tuple[Query, Seen], NDArray[np.bool_]] = {}

    @property
    def types(self) -> frozenset[str]:
        """Event types that can move the monitor: those that some constraint names."""
        return self._types

    def step(self, seen: Seen, event_type: str) -> Seen | None:
        """The seen types with one more, or None if the trace deviates by it.

        It deviates if the type was blocked, or if no conforming trace begins like this any more.
        """
        if event_type not in self._types:
            return None if seen & self._end_events else seen
        before, event = self._reasoner.mask(seen), self._reasoner.mask((event_type,))
        if event & self._reasoner.blocked(before):
            return None
        if event_type in seen:
            return seen
        return seen | {event_type} if self._reasoner.is_alive(before | event, self._nothing) else None

    def live(self, seen: Seen, query: Query) -> NDArray[np.bool_]:
        """Which of ``query.states`` some conforming continuation completes; read-only, as it is shared."""
        row = self._rows.get((query, seen))
        if row is None:
            if len(self._rows) >= self._memory_limit:
                self._rows.clear()
                self._plans.clear()
            row = self._rows[query, seen] = self._live(self._reasoner.mask(seen), self._plan(query))
        return row

    def _live(self, seen: int, plan: _Plan) -> NDArray[np.bool_]:
        row = np.zeros(len(plan.goals), np.bool_)
        for index in reversed(range(len(plan.goals))):
            may_live = all(row[extension] for extension in plan.extensions[index])
            row[index] = may_live and self._reasoner.is_alive(seen, plan.goals[index])
        row.flags.writeable = False
        return row

    def _plan(self, query: Query) -> _Plan:
        if query not in self._plans:
            index_of = {(state.term, state.bound): index for index, state in enumerate(query.states)}
            extensions = [
                tuple(
                    index_of[state.term, state.bound | {atom}]
                    for atom in range(len(query.terms[state.term].atoms))
                    if atom not in state.bound and (state.term, state.bound | {atom}) in index_of
                )
                for state in query.states
            ]
            goals = tuple(self._reasoner.goal(remainder_of(query, state)) for state in query.states)
            self._plans[query] = _Plan(goals, tuple(extensions))
        return self._plans[query]
