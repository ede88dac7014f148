"""Timers in event time: when a (trace, pattern) entry is due, and which of its runs are then dropped or decided."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs.arena import close_pair, free_run
from nfa.kernels.runs.parking import sweep
from nfa.kernels.runs.ranks import has_to_rank
from nfa.kernels.runs.tables import (
    ACTIVE,
    DECIDED,
    DONE,
    EARLIEST,
    FILLED,
    FLUSH,
    HAS_REPORTED,
    LATEST,
    NEEDED,
    NIL,
    NO_ROOM,
    NOT_REPORTED_YET,
    PATTERN,
    PENDING,
    REPORTED,
    ROW,
    SPENT,
    TIMEOUTS,
    TRACE,
    WRITTEN,
    Int,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.timeouts import time_out
from nfa.kernels.runs.waits import decide, is_decided
from nfa.kernels.runs.windows import is_past, latest_end
from streams.kernels.compiling import routine


@routine
def renew_due(p: RunProgram, s: RunState, pair: Int) -> None:
    """Update the due time of a pair: the time at which the pair can change even if no event arrives."""
    pattern = s.pair_pattern[pair]
    within = p.within[pattern]
    due = s.pair_parked_due[pair]
    run = s.pair_runs[pair]
    while run != NIL:
        kind = s.run_kind[run]
        own = LATEST
        if kind == DECIDED or (kind == PENDING and s.run_lead[run] != EARLIEST):
            own = s.run_due[run] if s.run_due[run] == LATEST else s.run_due[run] + 1
        elif kind in (PENDING, REPORTED):
            own = s.run_due[run]
        elif within != LATEST:
            own = s.run_end[run]
            if kind == SPENT:
                own = latest_end(p, s, np.int64(pattern), s.run_node[run])
        due = min(due, own)
        run = s.run_next[run]
    for number in range(s.pair_leads.shape[1] if within != LATEST else 0):
        if s.pair_leads[pair, number, 0] != EARLIEST:
            due = min(due, s.pair_leads[pair, number, 0] + within)
    s.pair_due[pair] = due


@routine
def is_void(s: RunState, pair: Int) -> bool:
    """Return whether a pair has no data any more, so that it can be closed."""
    if (
        s.pair_runs[pair] != NIL
        or s.pair_parked[pair] != NIL
        or s.pair_finished[pair]
        or s.pair_told[pair] == HAS_REPORTED
    ):
        return False
    if s.pair_work[pair] != 0:  # closing would clear unpaid work, which must not depend on when time passes
        return False
    is_empty = True
    for number in range(s.pair_leads.shape[1]):
        is_empty &= s.pair_leads[pair, number, 0] == EARLIEST
    return is_empty


@routine
def forget(p: RunProgram, s: RunState, pair: Int, time: Int) -> None:
    """Drop the times of leading NOTs that are older than the window, and update the pair's due time.

    If no data remain, the pair is closed.
    """
    within = p.within[s.pair_pattern[pair]]
    for number in range(s.pair_leads.shape[1] if within != LATEST else 0):
        if s.pair_leads[pair, number, 0] != EARLIEST and s.pair_leads[pair, number, 0] + within <= time:
            s.pair_leads[pair, number, 0] = s.pair_leads[pair, number, 1] = EARLIEST
    renew_due(p, s, pair)
    if is_void(s, pair):
        close_pair(s, pair)


@routine
def note_reported(s: RunState, pair: Int, filled: Int) -> None:
    """Record that a pair has emitted a result, if the guard's policy needs this record (``Prune.QUERY``).

    ``filled`` is the number of results before the pair was processed.
    """
    if s.pair_told[pair] == NOT_REPORTED_YET and s.counters[FILLED] > filled:
        s.pair_told[pair] = HAS_REPORTED


@routine
def expire(p: RunProgram, s: RunState, out: RunMatches, pair: Int, time: Int) -> None:
    """Advance the time of a pair: drop expired runs, and decide the matches that are due.

    The matches must need no ranking. All events before ``time`` must have been processed.
    """
    pattern = s.pair_pattern[pair]
    s.now[PATTERN], s.now[WRITTEN] = pattern, 0
    if (p.flags[pattern] & TIMEOUTS) != 0:
        time_out(p, s, out, pair, time)
    filled = s.counters[FILLED]
    if s.pair_parked_due[pair] <= time:
        sweep(s, pair, time)
    previous = NIL
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        is_over = s.run_kind[run] == ACTIVE and is_past(s, run, time)
        if s.run_kind[run] == PENDING and is_decided(s, run, time, np.bool_(False)):
            is_over = not decide(p, s, out, run)
        if s.run_kind[run] == REPORTED and s.run_due[run] <= time:
            is_over = True
        if not is_over:
            previous = run
        else:
            if previous == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[previous] = following
            free_run(s, run)
            s.pair_count[pair] -= 1
        run = following
    note_reported(s, pair, filled)
    forget(p, s, pair, time)


@routine
def pass_time(
    p: RunProgram, s: RunState, out: RunMatches, pairs: NDArray[np.int32], first: Int, watermark: Int
) -> tuple[Int, Int]:
    """Advance the time of the due ``pairs`` to the watermark, from the index ``first`` on.

    Returns (status, index). If the status is not ``DONE``, the call stopped at the pair with this index. ``NO_ROOM``
    means that the results are full. ``FLUSH`` means that matches of the pair must be ranked.
    """
    for place in range(first, pairs.shape[0]):
        pair = pairs[place]
        if has_to_rank(p, s, pair):
            return FLUSH, np.int64(place)
        if s.counters[FILLED] + s.pair_count[pair] > out.node.shape[0]:
            s.counters[NEEDED] = s.pair_count[pair]
            return NO_ROOM, np.int64(place)
        s.now[TRACE], s.now[ROW] = s.pair_trace[pair], NIL
        expire(p, s, out, pair, watermark)
    return DONE, np.int64(pairs.shape[0])
