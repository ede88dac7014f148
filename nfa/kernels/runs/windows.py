"""The windows of WITHIN. The window of a run begins at its earliest event."""

from __future__ import annotations

import numpy as np

from nfa.kernels.conditions import NULL
from nfa.kernels.runs.tables import EARLIEST, LATEST, NIL, Int, RunProgram, RunState
from streams.kernels.compiling import routine


@routine
def window_end(p: RunProgram, s: RunState, pattern: Int, event: Int) -> np.int64:
    """Return the end of the window that begins at an event, or ``LATEST`` if the window does not end."""
    column = p.deadline[pattern]
    if column != NIL:
        return np.int64(LATEST if s.event_kinds[event, column] == NULL else s.event_values[event, column])
    within = p.within[pattern]
    return np.int64(LATEST if within == LATEST else s.event_time[event] + within)


@routine
def latest_end(p: RunProgram, s: RunState, pattern: Int, node: Int) -> np.int64:
    """Return the latest end of all windows that begin at an event of a chain."""
    latest = np.int64(EARLIEST)
    while node != NIL:
        latest = max(latest, window_end(p, s, pattern, np.int64(s.node_event[node])))
        node = s.node_parent[node]
    return latest


@routine
def is_past(s: RunState, run: Int, time: Int) -> bool:
    """Return whether the window of a run has ended at a time."""
    return bool(s.run_end[run] != LATEST and time >= s.run_end[run])
