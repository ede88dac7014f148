"""A read-only view of the run engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.values import NULL
from nfa.kernels.runs import tables, viewing
from nfa.kernels.runs.tables import LATEST, NIL, RunState
from nfa.runs.program import CompiledRuns


def held_pairs(state: RunState, compiled: CompiledRuns, now_us: int) -> NDArray[np.int64]:
    """Return the (trace, pattern) entries with partial matches. Expired partial matches do not count.

    The result (entries, 5) has these columns: trace number, pattern number, furthest state of the pattern's automaton,
    node of the newest event in this state, number of partial matches.
    """
    depths = np.array([depth for automaton in compiled.automata for depth in automaton.depths], np.int32)
    entries = np.zeros((int(state.counters[tables.PAIRS]), 5), np.int64)
    count = int(viewing.held_pairs(compiled.program, state, depths, now_us, entries)) if len(entries) else 0
    return entries[:count]


def window_end(state: RunState, compiled: CompiledRuns, pattern: int, node: int) -> int | None:
    """Return the time at which the business-time window of a partial match ends, or None if it has no end.

    ``node`` is the match's newest node.
    """
    events: list[int] = []
    while node != NIL:
        events.append(int(state.node_event[node]))
        node = int(state.node_parent[node])
    first = min(reversed(events), key=lambda event: int(state.event_time[event]))
    place = first, compiled.program.deadline[pattern]
    return None if state.event_kinds[place] == NULL else int(state.event_values[place])


def latest_window_end(state: RunState, compiled: CompiledRuns, pattern: int, newest_us: int) -> int | None:
    """Return the time at which the last window of a pattern's runs ends, but at least ``newest_us``.

    If a window has no end, return None.
    """
    first, end = compiled.program.state_from[pattern : pattern + 2]
    is_own = (state.run_kind != NIL) & (state.run_state >= first) & (state.run_state < end)
    latest = int(state.run_end[is_own].max(initial=newest_us))
    return None if latest == LATEST else latest


def chain(state: RunState, node: int) -> list[tuple[int, int]]:
    """Return the events of a chain, oldest first, as (atom number, sequence number). ``node`` is its newest node."""
    events: list[tuple[int, int]] = []
    while node != NIL:
        events.append((int(state.node_atom[node]), int(state.event_sequence[state.node_event[node]])))
        node = int(state.node_parent[node])
    return events[::-1]
