"""Decides, in exact mode, how a trace may continue under the workflow's automaton and the hand-written constraints.

The first place of a monitor state is the state of the automaton. The rest is a state of the ``Outlook`` of the
hand-written constraints (constraint-aware CEP, section 6.2). The automaton decides where the process ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from constraints.exact.joint import MAX_STEPS, JointSearch
from constraints.model import ConstraintSet, Part, Process
from constraints.process.automaton import START, ProcessAutomaton
from constraints.process.language import Completions, Language
from constraints.reasoning.clash import Clash
from constraints.reasoning.outlook import Outlook
from constraints.reasoning.rule_clash import least_clash
from constraints.remainder import NOTHING, Remainder, whole_of
from constraints.sets import bits_of
from nfa import EventClass, MonitorState, Query
from streams import Ties

MEMORY_LIMIT = 1 << 27  # maximum number of cells, one byte each, in the cached tables of queries


class ExactOutlook:
    """Advances monitor states and decides which continuations are still possible, in exact mode.

    In this mode, the automaton of a workflow decides together with the hand-written constraints. ``constraint_set`` has
    all constraints, and ``own`` is the outlook of the hand-written constraints alone. ``max_steps`` limits a search for
    a word that the process and the hand-written constraints both allow.
    """

    def __init__(
        self,
        constraint_set: ConstraintSet,
        process: Process,
        automaton: ProcessAutomaton,
        ties: Ties = "log",
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.constraint_set, self.process, self.automaton = constraint_set, process, automaton
        beside = _beside(constraint_set, automaton)
        self.own = Outlook(beside, ties)
        self.start = replace(self.own.start, places=(START, *self.own.start.places))
        self._language = Language(
            automaton,
            assumes_completion=self.own.assumes_completion,
            ends=beside.end_events if ties == "log" else frozenset(),
            known=self.own.alphabet,
        )
        self._joint = JointSearch(self._language, beside, ties, max_steps=max_steps)
        self._tables: dict[Query, NDArray[np.bool_]] = {}

    @classmethod
    def of(cls, constraint_set: ConstraintSet, ties: Ties = "log") -> ExactOutlook | None:
        """Return the outlook of a set in exact mode, or None for other sets."""
        process = constraint_set.process
        if process is None or process.automaton is None:
            return None
        return cls(constraint_set, process, process.automaton, ties)

    @property
    def ties(self) -> Ties:
        return self.own.ties

    @property
    def given_up(self) -> int:
        """Number of searches that were given up and therefore answered with "possible"."""
        return self._joint.given_up + self.own.rules.given_up

    @property
    def types(self) -> frozenset[str]:
        return self.own.constraint_set.types | frozenset(self.automaton.letters)

    def own_state(self, state: MonitorState) -> MonitorState:
        """Return the part of a monitor state that belongs to the hand-written constraints."""
        return replace(state, places=state.places[1:])

    def allowed(self, state: MonitorState) -> tuple[str, ...]:
        """Return the types that the process allows next, sorted; none if the trace has ended."""
        return () if self.own.is_over(state) else self.automaton.allowed(state.places[0])

    def moved(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """Return the state after one more event.

        The result is None if the process or the hand-written constraints do not allow the event.
        """
        after = self.own.moved(self.own_state(state), event)
        place = self._language.step(state.places[0], event.type)
        return None if after is None or place is None else replace(after, places=(place, *after.places))

    def is_consistent(self, state: MonitorState) -> bool:
        """Check whether some conforming trace begins with the events so far.

        The result is valid only if ``moved`` has accepted each of these events.
        """
        return self.can_complete(state, NOTHING)

    def can_complete(self, state: MonitorState, remainder: Remainder) -> bool:
        own_state = self.own_state(state)
        return (
            self.own.can_complete(own_state, remainder)
            and self._can_process(state, self._by_word(remainder))
            and self.is_jointly_possible(state, remainder)
        )

    def _can_process(self, state: MonitorState, remainder: Remainder) -> bool:
        if self.own.is_over(state):
            return self._language.can_end(state.places[0], remainder, 0)
        return self._language.completions(remainder).has(state.places[0], 0)

    def is_jointly_possible(
        self, state: MonitorState, remainder: Remainder, bound: frozenset[int] = frozenset()
    ) -> bool:
        """Check whether some continuation completes a remainder under process and hand-written constraints together.

        The caller has checked that each of them alone allows the remainder. ``bound`` are the remainder's atoms that
        have already occurred.
        """
        if not self._joint.is_needed:
            return True
        place, own_state, mask = state.places[0], self.own_state(state), bits_of(bound)
        if self.own.is_over(state):
            return self._joint.may_end(place, own_state, remainder, mask)
        return self._joint.is_possible(place, own_state, self._by_word(remainder), mask)

    def is_jointly_live(self, state: MonitorState, query: Query, index: int) -> bool:
        """Check whether a pattern state can complete under process and hand-written constraints together.

        The caller has checked that each of them alone allows the state.
        """
        pattern_state = query.states[index]
        return self.is_jointly_possible(state, whole_of(query, pattern_state.term), pattern_state.bound)

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Return a mask of the ``query.states`` that can complete according to the process alone.

        Callers must not change the array, because it may be a row of a cached table.
        """
        place = state.places[0]
        if self.own.is_over(state):
            is_accepted = bool(self._language.accepting[place])
            full = [
                is_accepted and len(query.terms[pattern_state.term].atoms) == len(pattern_state.bound)
                for pattern_state in query.states
            ]
            return np.array(full, np.bool_)
        if len(query.states) * len(self.automaton) > MEMORY_LIMIT:
            alone = [
                self._whole(query, pattern_state.term).has(place, bits_of(pattern_state.bound))
                for pattern_state in query.states
            ]
            return np.array(alone, np.bool_)
        row: NDArray[np.bool_] = self._table(query)[place]
        return row

    def _table(self, query: Query) -> NDArray[np.bool_]:
        """Return a mask (automaton states, pattern states) of the pattern states that can complete."""
        if query not in self._tables:
            size = len(query.states) * len(self.automaton)
            if size + sum(table.size for table in self._tables.values()) > MEMORY_LIMIT:
                self._tables.clear()
            table = np.empty((len(self.automaton), len(query.states)), np.bool_)
            for index, pattern_state in enumerate(query.states):
                table[:, index] = self._whole(query, pattern_state.term).of(bits_of(pattern_state.bound))
            table.flags.writeable = False
            self._tables[query] = table
        return self._tables[query]

    def _whole(self, query: Query, term: int) -> Completions:
        return self._language.completions(self._by_word(whole_of(query, term)))

    def _by_word(self, remainder: Remainder) -> Remainder:
        """Remove the NOTs if events with equal timestamps are unordered, because a word has an order."""
        return remainder if self.ties == "log" else remainder.positives


def find_workflow_clash(outlook: ExactOutlook, state: MonitorState, remainder: Remainder = NOTHING) -> Clash | None:
    """Find a minimal reason why ``remainder`` cannot complete after ``state``, or None if it can complete."""
    if outlook.can_complete(state, remainder):
        return None
    constraint_set, own_parts = outlook.constraint_set, outlook.constraint_set.own.parts

    def clashes(parts: Sequence[Part], part: Remainder) -> bool:
        left_out = frozenset(own_parts).difference(parts)
        kept_set = constraint_set.of_parts(kept_part for kept_part in constraint_set.parts if kept_part not in left_out)
        reduced = ExactOutlook(kept_set, outlook.process, outlook.automaton, outlook.ties)
        rules = [
            place for rule, place in zip(constraint_set.rules, state.places[1:], strict=True) if rule in kept_set.rules
        ]
        return not reduced.can_complete(replace(state, places=(state.places[0], *rules)), part)

    return replace(least_clash(own_parts, remainder, clashes), workflow=outlook.process.workflow)


def _beside(constraint_set: ConstraintSet, automaton: ProcessAutomaton) -> ConstraintSet:
    """Return the hand-written constraints. Their known types are all types of the process and of the set."""
    settings = constraint_set.settings
    types = settings.types | constraint_set.types | frozenset(automaton.letters)
    return replace(constraint_set.own, settings=replace(settings, types=types))
