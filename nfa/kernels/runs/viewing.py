"""A read-only view of the runs, with a row for each trace and pattern."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs.tables import ACTIVE, NIL, PENDING, Int, RunProgram, RunState
from nfa.kernels.runs.windows import is_past
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel, routine


@routine
def is_open(s: RunState, run: Int, now: Int) -> bool:
    """Return whether a run is a live partial match, or a complete match whose trailing conditions are undecided."""
    if s.run_muted[run]:
        return False
    if s.run_kind[run] == PENDING:
        return True
    return bool(s.run_kind[run] == ACTIVE and not is_past(s, run, now))


@routine
def is_further(s: RunState, depths: NDArray[np.int32], run: Int, other: Int) -> bool:
    """Return whether a run has made more progress than another run.

    If both have made equal progress, the run with newer events is further.
    """
    depth, than = depths[s.run_state[run]], depths[s.run_state[other]]
    if depth != than:
        return bool(depth > than)
    node, against = s.run_node[run], s.run_node[other]
    while node != NIL:
        if against == NIL:
            return True
        sequence, known = s.event_sequence[s.node_event[node]], s.event_sequence[s.node_event[against]]
        if sequence != known:
            return bool(sequence > known)
        node, against = s.node_parent[node], s.node_parent[against]
    return bool(s.run_state[run] > s.run_state[other])


@kernel
def held_pairs(p: RunProgram, s: RunState, depths: NDArray[np.int32], now: Int, entries: NDArray[np.int64]) -> Int:
    """List the (trace, pattern) pairs that have unexpired partial matches, and return the number of pairs.

    For each pair, ``entries`` receives (trace, pattern, furthest run's state, its newest node, number of runs).
    """
    p, s, depths, entries = borrowed(p), borrowed(s), borrowed(depths), borrowed(entries)
    count = np.int64(0)
    for pair in range(s.pair_pattern.shape[0]):
        pattern = s.pair_pattern[pair]
        if pattern == NIL:
            continue
        best, ways = np.int64(NIL), np.int64(0)
        for first in (s.pair_runs[pair], s.pair_parked[pair]):
            run = np.int64(first)
            while run != NIL:
                if is_open(s, run, now):
                    ways += 1
                    if best == NIL or is_further(s, depths, run, best):
                        best = run
                run = np.int64(s.run_next[run])
        if best != NIL:
            entries[count, 0], entries[count, 1] = s.pair_trace[pair], pattern
            entries[count, 2] = s.run_state[best] - p.state_from[pattern]
            entries[count, 3], entries[count, 4] = s.run_node[best], ways
            count += 1
    return count
