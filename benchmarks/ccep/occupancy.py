"""Bound events and probes of R-CEP and C-CEP by a replay of occupied pattern states, as a check of the matcher.

The replay does not use the matcher. The states are those of the pattern's terms, and an oracle decides which events can
still occur (constraint-aware CEP, sections 2 and 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.ccep.kernels import replay as kernel
from benchmarks.ccep.queries import Query
from benchmarks.ccep.stream import TYPES, OrderStream
from nfa import Prune, Term, build_query, parse_pattern
from nfa import Query as QueryGraph

Bound: TypeAlias = frozenset[int]
State: TypeAlias = tuple[int, Bound]
OracleState: TypeAlias = Any

_PRUNE = {Prune.STATE: kernel.STATE, Prune.QUERY: kernel.QUERY}
_MOST_INSTANCES = 24  # instances of an order
_ALL = np.int64(-1)


class Oracle(Protocol):
    """An oracle that decides which events can still occur in a trace. Its states are opaque and hashable."""

    start: OracleState  # state of a new trace

    def __hash__(self) -> int: ...

    def step(self, state: OracleState, event_type: str) -> OracleState | None:
        """Return the state after one more event. If the event is impossible, return None."""
        ...

    def can_complete(self, state: OracleState, query: QueryGraph, place: State) -> bool:
        """Return whether a partial match of (term, bound atoms) can still complete."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Counts of a replay over the whole stream.

    Attributes:
        held: int32 number of bound events after each event.
        peak: The largest of these numbers from ``OrderStream.settled`` on.
        matches: The number of matches.
        scan_probes: The number of tests of an event against an enabled atom of any type.
        typed_probes: The number of such tests in which the types agree.
        binds: The number of ways taken, that is, of extensions of a retained state by an event.
        deviations: The number of events that are impossible by the oracle.
    """

    held: NDArray[np.int32]
    peak: int
    matches: int
    scan_probes: int
    typed_probes: int
    binds: int
    deviations: int


def replayed(query: Query, stream: OrderStream, oracle: Oracle | None = None, prune: Prune = Prune.OFF) -> Replayed:
    """Replay one pattern over a stream. Without an oracle, replay R-CEP."""
    tables = _tables(query.text, oracle)
    held = np.zeros(len(stream), np.int32)
    counts = np.zeros(kernel.N_COUNTS, np.int64)
    slots, states = stream.concurrent, len(tables.enables)
    traces = kernel.Traces(
        occupied=np.zeros(slots, np.int64),
        counts=np.zeros((slots, states), np.int64),
        monitors=np.zeros(slots, np.int32),
        n_instances=np.zeros(slots, np.int32),
        instances=np.zeros((slots, _MOST_INSTANCES), np.int64),
    )
    events = kernel.Stream(types=stream.types, slots=stream.slots, passed=stream.passes(query.priced), ends=stream.ends)
    kernel.replay(tables, events, traces, _PRUNE[prune] if oracle else kernel.NONE, held, counts)
    return Replayed(
        held=held,
        peak=int(held[stream.settled :].max()),
        matches=int(counts[kernel.MATCHES]),
        scan_probes=int(counts[kernel.SCAN]),
        typed_probes=int(counts[kernel.TYPED]),
        binds=int(counts[kernel.BINDS]),
        deviations=int(counts[kernel.DEVIATIONS]),
    )


def states_of(graph: QueryGraph) -> list[State]:
    """Return all states of all terms, including the empty and the complete ones."""
    return [(number, bound) for number, term in enumerate(graph.terms) for bound in _down_closed(term)]


def reached(oracle: Oracle) -> list[OracleState]:
    """Return the oracle's states that traces of the workflow's types can reach, starting with the initial state."""
    found: dict[OracleState, None] = {oracle.start: None}
    waiting = [oracle.start]
    while waiting:
        state = waiting.pop()
        for name in TYPES:
            after = oracle.step(state, name)
            if after is not None and after not in found:
                found[after] = None
                waiting.append(after)
    return list(found)


def live_row(oracle: Oracle, state: OracleState, graph: QueryGraph) -> tuple[bool, ...]:
    """Return, for each state in ``states_of``, whether it is complete or can still complete."""
    return tuple(
        len(place[1]) == len(graph.terms[place[0]].atoms) or oracle.can_complete(state, graph, place)
        for place in states_of(graph)
    )


def _down_closed(term: Term) -> list[Bound]:
    atoms = range(len(term.atoms))
    chosen = (frozenset(some) for size in range(len(atoms) + 1) for some in combinations(atoms, size))
    return [some for some in chosen if all(term.before[atom] <= some for atom in some)]


def _bits(states: list[State], accept: Callable[[State], bool]) -> np.int64:
    return np.int64(sum(1 << place for place, state in enumerate(states) if accept(state)))


@cache
def _tables(text: str, oracle: Oracle | None) -> kernel.Tables:
    graph = build_query(parse_pattern(text))
    states = states_of(graph)
    sizes = [len(term.atoms) for term in graph.terms]
    atoms = sorted({key for term in graph.terms for key in term.keys})
    types = len(TYPES)
    ways: list[tuple[int, int, int]] = []
    enables, by_type = np.zeros(len(states), np.int64), np.zeros(types, np.int64)
    for source, (number, bound) in enumerate(states):
        term = graph.terms[number]
        for atom in range(len(term.atoms)):
            if atom in bound or not term.before[atom] <= bound:
                continue
            code, place = TYPES.index(term.atoms[atom].type), atoms.index(term.keys[atom])
            ways.append((code, source, states.index((number, bound | {atom}))))
            enables[source] |= np.int64(1 << place)
            by_type[code] |= np.int64(1 << place)
    ways.sort()
    rows, live = _answers(graph, oracle)
    return kernel.Tables(
        listen=np.searchsorted([way[0] for way in ways], np.arange(types + 1)).astype(np.int32),
        ways=np.array([way[1:] for way in ways], np.int32),
        enables=enables,
        by_type=by_type,
        terms=np.array([_bits(states, lambda state, n=n: state[0] == n) for n in range(len(sizes))], np.int64),  # type: ignore[misc]
        empty=np.array(_bits(states, lambda state: not state[1])),
        proper=np.array(_bits(states, lambda state: 0 < len(state[1]) < sizes[state[0]])),
        complete=np.array(_bits(states, lambda state: len(state[1]) == sizes[state[0]])),
        next=rows,
        live=live,
    )


def _answers(graph: QueryGraph, oracle: Oracle | None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the oracle's states as rows: the next state by type, and the alive pattern states."""
    if oracle is None:
        return np.zeros((1, len(TYPES)), np.int32), np.full(1, _ALL)
    found = reached(oracle)
    numbers = {state: number for number, state in enumerate(found)}
    rows = np.full((len(found), len(TYPES)), -1, np.int32)
    for number, state in enumerate(found):
        for code, name in enumerate(TYPES):
            after = oracle.step(state, name)
            if after is not None:
                rows[number, code] = numbers[after]
    live = [
        sum(1 << place for place, is_live in enumerate(live_row(oracle, state, graph)) if is_live) for state in found
    ]
    return rows, np.array(live, np.int64)
