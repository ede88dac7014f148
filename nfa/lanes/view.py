"""A read-only view of a lane's open traces and partial matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct
from nfa.guards.tables import Interned
from nfa.kernels.open_traces import UNKNOWN
from nfa.kernels.traces import UNGUARDED
from nfa.lanes.layout import Layout
from nfa.lanes.state import LaneState
from nfa.language.description import describe_atom
from nfa.registered import RunningPattern
from nfa.results.event_store import select_events
from nfa.results.open_cases import BoundStep, Furthest, Keeping
from nfa.traces.table import is_deviant
from streams import shown_texts

_SHARED, _RUNS = 0, 1


@dataclass(frozen=True, slots=True)
class ListedTraces:
    """The open traces of a lane, in any order, as arrays of equal length.

    Attributes:
        keys: Hashed correlation keys.
        events: Number of events, negative if unknown.
        last: Type number of the newest event.
        is_unnamed: Whether the text of the key is unknown.
    """

    keys: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    monitors: NDArray[np.int32]
    is_deviating: NDArray[np.bool_]
    first_us: NDArray[np.int64]
    newest_us: NDArray[np.int64]
    events: NDArray[np.int32]
    last: NDArray[np.int32]
    is_unnamed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class HeldMatches:
    """The partial matches in a lane as arrays of equal length, with one entry for each trace and pattern.

    Attributes:
        homes: Hashed correlation keys.
        engines: The engine that retains the partial matches.
        states: The furthest state of the pattern's automaton that a partial match has reached.
        nodes: The engine's node of the newest event in the furthest state.
    """

    homes: NDArray[np.uint64]
    patterns: NDArray[np.int64]
    counts: NDArray[np.int64]
    engines: NDArray[np.int64]
    states: NDArray[np.int64]
    nodes: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LaneView:
    """A read-only view of a lane between two batches.

    ``is_finer`` is whether the lane's key is finer than the correlation key.
    """

    state: LaneState
    layout: Layout
    is_finer: bool

    @property
    def patterns(self) -> Sequence[RunningPattern]:
        return self.layout.patterns

    def traces(self) -> ListedTraces | None:
        """Return the open traces, or None if the lane does not list them."""
        if self.state.open is None:
            return None
        keys, numbers, monitors = self._open
        times = self.state.open.times
        return ListedTraces(
            keys=keys,
            numbers=numbers,
            monitors=monitors,
            is_deviating=is_deviant(monitors),
            first_us=times.first[numbers],
            newest_us=times.newest[numbers],
            events=times.events[numbers],
            last=times.last[numbers],
            is_unnamed=times.events[numbers] == UNKNOWN,
        )

    def open_keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys of all open traces in the lane's table, in any order."""
        return self._open[0]

    def held(self) -> HeldMatches:
        """Return all partial matches that have not expired."""
        now_us = self.state.table.newest_us
        shared, runs = self.state.shared.held_pairs(now_us), self.state.runs.held_pairs(now_us)
        rows = np.concatenate([shared, runs])
        numbers = np.append(np.array(self.layout.run_numbers, np.int64), 0)
        rows[len(shared) :, 1] = numbers[rows[len(shared) :, 1]]
        return HeldMatches(
            homes=self._homes(rows[:, 0]),
            patterns=rows[:, 1],
            counts=rows[:, 4],
            engines=np.repeat([_SHARED, _RUNS], [len(shared), len(runs)]),
            states=rows[:, 2],
            nodes=rows[:, 3],
        )

    def furthest(self, held: HeldMatches, places: Sequence[int]) -> list[Furthest]:
        chains = [list(self._chain(held, place)) for place in places]
        sequences = distinct(np.array([sequence for chain in chains for _, sequence in chain], np.int64))
        events = select_events(self.state.events.parts, sequences)
        ids, times_us = shown_texts(events.columns.column("id")).to_pylist(), events.times_us.tolist()
        furthest: list[Furthest] = []
        for place, chain in zip(places, chains, strict=True):
            rows = events.find(np.array([sequence for _, sequence in chain], np.int64)).tolist()
            bound = [BoundStep(alias, ids[row], times_us[row]) for (alias, _), row in zip(chain, rows, strict=True)]
            pattern = self.patterns[held.patterns[place]]
            furthest.append(
                Furthest(
                    bound=bound,
                    waits_for=_waits_for(pattern, int(held.states[place])),
                    expires_us=self._expires_us(held, place, bound),
                )
            )
        return furthest

    def guard_of(self, trace: int, monitor: int) -> tuple[Keeping, Interned | None]:
        """Return the status of a trace under its guard, and the trace's monitor state if the status is ``kept``.

        The status is ``kept``, ``deviating``, or ``none`` if the trace has no guard.
        """
        if is_deviant(np.array([monitor], np.int32))[0]:
            return "deviating", None
        interned = self.state.guards.bits.state_of(trace) or self.state.guards.states[monitor]
        return ("none", None) if monitor == UNGUARDED or interned is None else ("kept", interned)

    def can_match(self, number: int, monitor: int) -> bool:
        """Return whether the pattern ``number`` can still complete in a trace that has bound none of its events yet.

        ``monitor`` is the number of the trace's monitor state.
        """
        tables = self.state.guards.tables
        return bool(tables.live[tables.truth[monitor], self.layout.state_range[number]])

    @cached_property
    def _open(self) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
        return self.state.table.open_traces()

    def _homes(self, traces: NDArray[np.int64]) -> NDArray[np.uint64]:
        keys, numbers, _ = self._open
        by_number = np.zeros(self.state.table.capacity, np.uint64)
        by_number[numbers] = keys
        hashes = by_number[traces]
        if not self.is_finer or not len(hashes):
            return hashes
        pairs = self.state.finer.pairs[np.argsort(self.state.finer.pairs[:, 1])]
        homes: NDArray[np.uint64] = pairs[np.searchsorted(pairs[:, 1], hashes), 0]
        return homes

    def _expires_us(self, held: HeldMatches, place: int, bound: Sequence[BoundStep]) -> int | None:
        number = int(held.patterns[place])
        pattern = self.patterns[number].query.pattern
        if pattern.within_business is not None:
            return self.state.runs.window_end(self.layout.run_numbers.index(number), int(held.nodes[place]))
        return None if pattern.within_us is None else min(step.time_us for step in bound) + pattern.within_us

    def _chain(self, held: HeldMatches, place: int) -> Iterator[tuple[str, int]]:
        """Yield the events of the furthest partial match at the index ``place``, each as (alias, sequence number)."""
        node, number = int(held.nodes[place]), int(held.patterns[place])
        automaton = self.patterns[number].automaton
        if held.engines[place] == _SHARED:
            for alias, sequence in self.state.shared.chain(node, number, self.state.table.newest_us):
                yield automaton.aliases[alias], sequence
        else:
            for atom, sequence in self.state.runs.chain(node):
                yield automaton.atoms[atom].alias, sequence


def waiting_states(pattern: RunningPattern, event_type: str) -> NDArray[np.bool_]:
    """Return a mask of the states of a pattern's automaton that wait for ``event_type``.

    An event of this type may extend a partial match in such a state.
    """
    automaton = pattern.automaton
    waits = np.zeros(len(automaton.finishes), np.bool_)
    for transition in automaton.transitions:
        atom = automaton.atoms[transition.atom]
        waits[transition.source] |= atom.is_any_type or event_type in atom.types
    return waits


def _waits_for(pattern: RunningPattern, state: int) -> list[str]:
    automaton = pattern.automaton
    steps = [
        describe_atom(automaton.atoms[transition.atom])
        for transition in automaton.transitions
        if transition.source == state
    ]
    for finish in automaton.finishes[state]:
        steps += [f"NOT {describe_atom(automaton.outline.negated[negation.number])}" for negation in finish.negations]
    return list(dict.fromkeys(steps))
