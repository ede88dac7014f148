"""The guard that reasons from constraints: it advances a trace's monitor, and decides which states can complete."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from constraints.exact.outlook import ExactOutlook
from constraints.model import Clause, ConstraintSet
from constraints.monitoring.bit_tables import BitTables
from constraints.reasoning.outlook import MEMORY_LIMIT, Outlook
from constraints.reasoning.reasoner import Goal
from constraints.remainder import Remainder, remainder_of
from nfa import Atom, EventClass, MonitorState, Policy, Query, Symbol
from streams import Ties


@dataclass(frozen=True, slots=True)
class _Plan:
    """The states of one query, prepared for a monitor: the remainder of each state, and the reasoner's goal for it.

    A state for which ``is_monotone`` is true stays dead once it is dead. ``extensions`` lists, for each such state, the
    states with one more bound atom. If one of these is dead, the state is dead, too.
    """

    remainders: tuple[Remainder, ...]
    goals: tuple[Goal, ...]
    extensions: tuple[tuple[int, ...], ...]
    is_monotone: NDArray[np.bool_]


class Monitor:
    """The guard of one constraint set (constraint-aware CEP, section 4.2); see ``nfa.Guard``.

    A trace deviates at the first event after which it is no longer the beginning of a conforming trace. An event of an
    unknown type is a deviation if the settings require it. But dead states are decided as if such events were possible.

    The monitor is inexact in three cases: with symbols, with rules beside other constraints, and if events with equal
    timestamps are unordered. In these cases it may notice a deviation later, but never earlier, and may call a dead
    state live.

    Answers are cached. The cache is emptied when it has ``memory_limit`` rows. In traces under bit tables, the longer
    clauses in ``watched`` are evaluated, or all if ``watched`` is None.

    In exact mode the workflow's automaton replaces the constraints that follow from the workflow (section 6.2). The
    first of a monitor state's places is the state of the automaton. Automaton and hand-written constraints together
    find all dead states, unless ``JointSearch`` gives a search up.
    """

    def __init__(
        self,
        constraint_set: ConstraintSet,
        *,
        ties: Ties = "log",
        watched: Collection[Clause] | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._exact = ExactOutlook.of(constraint_set, ties)
        self._outlook = Outlook(constraint_set, ties) if self._exact is None else self._exact.own
        settings = constraint_set.settings
        self._types = constraint_set.types if self._exact is None else self._exact.types
        self._types |= self._outlook.alphabet or frozenset()
        self._symbols = tuple(constraint_set.symbols[name] for name in sorted(constraint_set.symbols))
        self._policy = Policy(
            prune=settings.prune,
            on_violation=settings.on_violation,
            max_monitor_states=settings.max_monitor_states,
        )
        self._watched = watched
        self._memory_limit = memory_limit
        self._plans: dict[Query, _Plan] = {}
        self._rows: dict[tuple[Query, MonitorState], NDArray[np.bool_]] = {}
        self._came_from: dict[MonitorState, MonitorState] = {}

    @property
    def types(self) -> frozenset[str]:
        """Event types that can change the monitor state: the types of all names, and the types in the settings."""
        return self._types

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return self._symbols

    @property
    def policy(self) -> Policy:
        return self._policy

    @property
    def start(self) -> MonitorState:
        return (self._exact or self._outlook).start

    @cached_property
    def bits(self) -> BitTables | None:
        """Bit tables, for traces that would need more monitor states than the settings allow.

        They are None if events with equal timestamps are unordered. They are also None in exact mode, because bit
        tables need all types that were seen, and the state of an automaton does not contain them.
        """
        outlook = self._outlook
        if self._exact is not None or outlook.ties != "log":
            return None
        return BitTables(outlook.constraint_set, watched=self._watched)

    def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        judge = self._exact or self._outlook
        after = judge.moved(state, event)
        if after is None or after == state:
            return None if after is None else state
        if not judge.is_consistent(after):
            return None
        if len(self._came_from) >= self._memory_limit:
            self._came_from.clear()
        self._came_from.setdefault(after, state)
        return after

    def can_occur(self, state: MonitorState, atom: Atom) -> bool:
        outlook = self._outlook
        if outlook.is_over(self._own_state(state)):
            return False
        types: frozenset[str] = frozenset(atom.types)
        if atom.is_any_type:
            if outlook.alphabet is None:
                return outlook.keeps_rules(self._own_state(state), _just(atom)) and (
                    self._exact is None or self._exact.can_complete(state, _just(atom))
                )
            types = outlook.alphabet
        judge = self._exact or outlook
        return any(judge.can_complete(state, _just(replace(atom, types=(name,)))) for name in sorted(types))

    def _own_state(self, state: MonitorState) -> MonitorState:
        return state if self._exact is None else self._exact.own_state(state)

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Return a mask of the ``query.states`` that some conforming continuation completes.

        Callers must not change the array, because it is cached.
        """
        row = self._rows.get((query, state))
        if row is None:
            if len(self._rows) >= self._memory_limit:
                self._rows.clear()
                self._plans.clear()
            row = self._rows[query, state] = self._live(state, query)
        return row

    def _live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Compute the mask that ``live`` returns.

        Dead states that stay dead are copied from the cached mask of the previous state.
        """
        plan, outlook, own_state = self._plan(query), self._outlook, self._own_state(state)
        row = np.ones(len(plan.goals), np.bool_)
        previous = self._rows.get((query, self._came_from.get(state, state)))
        if previous is not None:
            row = previous | ~plan.is_monotone
        if self._exact is not None:
            row &= self._exact.live(state, query)
        seen, settled = outlook.masks(own_state)
        for index in reversed(range(len(plan.goals))):
            if row[index]:
                row[index] = (
                    all(row[extension] for extension in plan.extensions[index])
                    and outlook.reasoner.is_alive(seen, plan.goals[index], settled)
                    and outlook.keeps_rules(own_state, plan.remainders[index])
                    and (self._exact is None or self._exact.is_jointly_live(state, query, index))
                )
        row.flags.writeable = False
        return row

    def _plan(self, query: Query) -> _Plan:
        if query not in self._plans:
            remainders = tuple(remainder_of(query, state) for state in query.states)
            self._plans[query] = _Plan(
                remainders,
                tuple(map(self._outlook.reasoner.goal, remainders)),
                tuple(self._extensions(query)),
                np.array([self._is_monotone(query, state.term) for state in query.states], np.bool_),
            )
        return self._plans[query]

    def _is_monotone(self, query: Query, term: int) -> bool:
        """Check whether the term's dead states stay dead. Then states with fewer bound atoms are dead, too.

        The result is False if the term has NOTs, because their gaps may close or open later. The result is also False
        if dead states may be missed.
        """
        return self._outlook.is_exact and not query.terms[term].absences

    def _extensions(self, query: Query) -> list[tuple[int, ...]]:
        index_of = {(state.term, state.bound): index for index, state in enumerate(query.states)}
        return [
            tuple(
                index_of[state.term, state.bound | {atom}]
                for atom in range(len(query.terms[state.term].atoms))
                if atom not in state.bound and (state.term, state.bound | {atom}) in index_of
            )
            if self._is_monotone(query, state.term)
            else ()
            for state in query.states
        ]


def _just(atom: Atom) -> Remainder:
    return Remainder((atom,), (frozenset(),))
