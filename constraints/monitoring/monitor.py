"""The guard that reasons from constraints: how a trace's monitor moves, and what can still complete."""

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
from nfa import Atom, EventClass, MonitorState, Policy, Query, Symbol, Ties


@dataclass(frozen=True, slots=True)
class _Plan:
    """The states of one query, ready to be asked about.

    Attributes:
        remainders: What each state needs.
        goals: The same for the reasoner.
        extensions: For each state those that bind one atom more, where they are alive whenever it is.
        is_monotone: For each state whether it stays dead once it is.
    """

    remainders: tuple[Remainder, ...]
    goals: tuple[Goal, ...]
    extensions: tuple[tuple[int, ...], ...]
    is_monotone: NDArray[np.bool_]


class Monitor:
    """Guard of one constraint set (constraint-aware CEP, section 4.2); see ``nfa.Guard``.

    A trace deviates at the first event after which no conforming trace begins like it. Where there are symbols, rules
    beside other constraints, or unordered events of one time, that may be noticed later, never too early; and a state
    may be called live that is not. A type that nobody knows makes a trace deviate where the settings say so; that it
    cannot come is not used to call states dead. Answers are remembered; the memory is emptied when it holds
    ``memory_limit`` rows.

    In exact mode the workflow's automaton stands in for what follows from the workflow (section 6.2): its state comes
    first among a monitor state's places, and together with what was written by hand everything dead is found, as long
    as the search for a common word is not too much work (``JointSearch``).

    Args:
        constraint_set: What traces keep to.
        ties: What events of one time are.
        watched: Longer clauses that traces beyond the cap of monitor states follow; None: all.
        memory_limit: Most rows that are remembered.
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
        """Event types that can move the monitor: those of all names, and those that the settings make known."""
        return self._types

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Conditions on events that it distinguishes, by name."""
        return self._symbols

    @property
    def policy(self) -> Policy:
        """How it wants to be used."""
        return self._policy

    @property
    def start(self) -> MonitorState:
        """The state of a new trace."""
        return self._outlook.start if self._exact is None else self._exact.start

    @cached_property
    def bits(self) -> BitTables | None:
        """Bit tables, for traces beyond the cap of monitor states.

        None where events of one time are not ordered, and in exact mode: they need all types that were seen, and the
        state of an automaton does not say which.
        """
        outlook = self._outlook
        if self._exact is not None or outlook.ties != "log":
            return None
        return BitTables(outlook.constraint_set, watched=self._watched)

    def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """The state after one more event, or None if the trace deviates by it."""
        after = self._moved(state, event)
        if after is None or after == state:
            return None if after is None else state
        if not (self._exact or self._outlook).is_consistent(after):
            return None
        if len(self._came_from) >= self._memory_limit:
            self._came_from.clear()
        self._came_from.setdefault(after, state)
        return after

    def _moved(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """The state after an event, whatever it leaves possible; None if it cannot come itself."""
        if self._exact is not None:
            return self._exact.moved(state, event)
        outlook = self._outlook
        if outlook.is_too_late(state, event) or outlook.is_unknown(event):
            return None
        return outlook.advance(state, event)

    def can_occur(self, state: MonitorState, atom: Atom) -> bool:
        """Whether some conforming continuation has an event that a step takes."""
        outlook = self._outlook
        if outlook.is_over(self._own(state)):
            return False
        types: frozenset[str] = frozenset(atom.types)
        if atom.is_any_type:
            if outlook.alphabet is None:
                return outlook.keeps_rules(self._own(state), _just(atom)) and self._can_process(state, atom)
            types = outlook.alphabet
        judge = self._exact or outlook
        return any(judge.can_complete(state, _just(replace(atom, types=(name,)))) for name in sorted(types))

    def _can_process(self, state: MonitorState, atom: Atom) -> bool:
        return self._exact is None or self._exact.can_complete(state, _just(atom))

    def _own(self, state: MonitorState) -> MonitorState:
        """The state without that of the workflow."""
        return state if self._exact is None else self._exact.own_state(state)

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Which of ``query.states`` some conforming continuation completes; read-only, as it is shared."""
        row = self._rows.get((query, state))
        if row is None:
            if len(self._rows) >= self._memory_limit:
                self._rows.clear()
                self._plans.clear()
            row = self._rows[query, state] = self._live(state, query)
        return row

    def _live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Dead states stay dead, so only those that were live before are asked about, where that row is known."""
        plan, outlook, own = self._plan(query), self._outlook, self._own(state)
        row = np.ones(len(plan.goals), np.bool_)
        previous = self._rows.get((query, self._came_from.get(state, state)))
        if previous is not None:
            row = previous | ~plan.is_monotone
        if self._exact is not None:
            row &= self._exact.live(state, query)
        seen, settled = outlook.masks(own)
        for index in reversed(range(len(plan.goals))):
            if row[index]:
                row[index] = (
                    all(row[extension] for extension in plan.extensions[index])
                    and outlook.reasoner.is_alive(seen, plan.goals[index], settled)
                    and outlook.keeps_rules(own, plan.remainders[index])
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
        """Whether a state stays dead as the trace goes on, and those that bind less are dead too.

        Not where something must not come: it may be over, or begin. Not where dead states are missed.
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
