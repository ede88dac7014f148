"""Replay of the pattern states that a stream occupies, event by event, with bit sets, independent of the matcher.

A *state* is a bit that represents a term with its bound atoms, including the empty and the complete state. For each
open trace, the replay stores the occupied states, the number of partial matches in each, and the monitor state. For
each instance, it stores the states whose partial matches contain the instance. The result is exact, because an event
extends all partial matches of a state alike, and pruning removes all partial matches of a state.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int: TypeAlias = int | np.int64
Longs: TypeAlias = NDArray[np.int64]

NONE, QUERY, STATE = 0, 1, 2  # modes of pruning
N_COUNTS = 5
MATCHES, SCAN, TYPED, BINDS, DEVIATIONS = range(N_COUNTS)


class Tables(NamedTuple):
    """One pattern, and the guard's answers about its states.

    Attributes:
        listen: (types + 1,) the ways of type j are ``listen[j]`` to ``listen[j + 1]``.
        ways: (n, 2) the source and target bit of each way.
        enables: (states,) the atoms that some way out of a state binds, as a bit set.
        by_type: (types,) the atoms of each type, as a bit set.
        terms: (terms,) the states of each term, as bit sets.
        empty: The empty state of every term, as a bit set; 0-dimensional like the next two.
        proper: The states that are neither empty nor complete.
        complete: The complete states.
        next: (monitors, types) the monitor state after an event, or -1 if the trace deviates.
        live: (monitors,) the states that can complete, as bit sets.
    """

    listen: NDArray[np.int32]
    ways: NDArray[np.int32]
    enables: Longs
    by_type: Longs
    terms: Longs
    empty: Longs
    proper: Longs
    complete: Longs
    next: NDArray[np.int32]
    live: Longs


class Stream(NamedTuple):
    """The events: type code, slot of the open trace, whether the pattern's condition holds, whether the trace ends."""

    types: NDArray[np.int8]
    slots: NDArray[np.int32]
    passed: NDArray[np.bool_]
    ends: NDArray[np.bool_]


class Traces(NamedTuple):
    """The state of open traces, by slot."""

    occupied: Longs
    counts: Longs
    monitors: NDArray[np.int32]
    n_instances: NDArray[np.int32]
    instances: Longs


@njit(cache=True)
def bits_in(word: Int) -> Int:
    """Return the number of bits that are set."""
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


@njit(cache=True)
def open_trace(tables: Tables, traces: Traces, slot: Int) -> None:
    """Delete the trace in a slot, and start a new one."""
    traces.occupied[slot] = tables.empty[()] & tables.live[0]
    traces.counts[slot] = 0
    traces.monitors[slot] = 0
    traces.n_instances[slot] = 0


@njit(cache=True)
def probe(tables: Tables, occupied: Int, event_type: Int, counts: Longs) -> None:
    """Count the atoms that an event is tested against: all enabled atoms, and the enabled atoms of the event's type."""
    enabled = np.int64(0)
    for state in range(tables.enables.shape[0]):
        if occupied >> state & 1:
            enabled |= tables.enables[state]
    counts[SCAN] += bits_in(enabled)
    counts[TYPED] += bits_in(enabled & tables.by_type[event_type])


@njit(cache=True)
def bind(tables: Tables, traces: Traces, slot: Int, event_type: Int, counts: Longs) -> None:
    """Extend every partial match that can bind the event."""
    before, own = traces.occupied[slot], np.int64(0)
    kept, found = traces.instances[slot], traces.counts[slot].copy()
    n = traces.n_instances[slot]
    added = np.zeros(n, np.int64)
    for way in range(tables.listen[event_type], tables.listen[event_type + 1]):
        source, target = tables.ways[way, 0], tables.ways[way, 1]
        if not before >> source & 1:
            continue
        counts[BINDS] += 1
        own |= np.int64(1) << target
        several = np.int64(1) if tables.empty[()] >> source & 1 else found[source]
        traces.counts[slot, target] += several
        if tables.complete[()] >> target & 1:
            counts[MATCHES] += several
        for place in range(n):
            if kept[place] >> source & 1:
                added[place] |= np.int64(1) << target
    if own:
        for place in range(n):
            kept[place] |= added[place]
        kept[n] = own
        traces.n_instances[slot] = n + 1
        traces.occupied[slot] = before | own


@njit(cache=True)
def survivors(tables: Tables, occupied: Int, monitor: Int, prune: Int) -> Int:
    """Return the occupied states that pruning keeps."""
    if prune == NONE:
        return occupied
    live = tables.live[monitor]
    kept: Int = occupied & live
    if prune == STATE:
        return kept
    kept = occupied
    for term in range(tables.terms.shape[0]):
        if not occupied & tables.terms[term] & (live | tables.complete[()]):
            kept &= ~tables.terms[term]
    return kept


@njit(cache=True)
def release(tables: Tables, traces: Traces, slot: Int) -> Int:
    """Release instances that no remaining partial match has bound. Return the number of bound instances that remain."""
    kept, n, held = traces.instances[slot], 0, 0
    for place in range(traces.n_instances[slot]):
        states = kept[place] & traces.occupied[slot]
        if states:
            kept[n] = states
            n += 1
            held += 1 if states & tables.proper[()] else 0
    traces.n_instances[slot] = n
    for state in range(tables.enables.shape[0]):
        if not traces.occupied[slot] >> state & 1:
            traces.counts[slot, state] = 0
    return held


@njit(cache=True)
def replay(tables: Tables, stream: Stream, traces: Traces, prune: Int, held: NDArray[np.int32], counts: Longs) -> None:
    """Replay a stream from its start.

    Args:
        tables: The pattern and its guard.
        stream: The events.
        traces: Memory for the open traces.
        prune: ``NONE``, ``QUERY`` or ``STATE``.
        held: (events,) output: the number of bound events after each event.
        counts: (N_COUNTS,) counters, which are increased.
    """
    for place in range(traces.occupied.shape[0]):
        open_trace(tables, traces, place)
    own = np.zeros(traces.occupied.shape[0], np.int32)
    total: Int = 0
    slots, types = stream.slots.astype(np.int64), stream.types.astype(np.int64)  # gives all routines one signature
    for event in range(types.shape[0]):
        slot, event_type = slots[event], types[event]
        if traces.occupied[slot]:
            probe(tables, traces.occupied[slot], event_type, counts)
            if stream.passed[event]:
                bind(tables, traces, slot, event_type, counts)
            if prune != NONE:
                after = tables.next[traces.monitors[slot], event_type]
                counts[DEVIATIONS] += 1 if after < 0 else 0
                traces.monitors[slot] = max(after, 0)
            traces.occupied[slot] = survivors(tables, traces.occupied[slot], traces.monitors[slot], prune)
            after_held = 0 if stream.ends[event] else release(tables, traces, slot)
            total += after_held - own[slot]
            own[slot] = after_held
        if stream.ends[event]:
            open_trace(tables, traces, slot)
        held[event] = total
