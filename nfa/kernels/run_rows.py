"""The loop of the run kernel: visits in, complete matches, ended pairs and losses out."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nfa.kernels.borrowing import borrowed
from nfa.kernels.run_arena import close_pair, find_pair, free_run, open_pair, place_event, release_event, release_node
from nfa.kernels.run_tables import (
    ACTIVE,
    BUDGET,
    CLOSE,
    DECIDED,
    DONE,
    EARLIEST,
    EVENT,
    EVENTS,
    FILLED,
    FLUSH,
    FRESH,
    GREEDY,
    LATEST,
    LISTENER,
    LOST,
    MONITOR,
    NEEDED,
    NIL,
    NO_ROOM,
    NODES,
    NOTHING,
    ORDER,
    PAIR_FREE,
    PATTERN,
    PEAK_EVENTS,
    PENDING,
    ROW,
    RUNS,
    SPENT,
    STOP_PAIR,
    TIME,
    TIMEOUTS,
    TRACE,
    UNTOLD,
    WRITTEN,
    Conditions,
    Ended,
    Found,
    Int,
    Limits,
    RunBatch,
    RunProgram,
    RunState,
)
from nfa.kernels.runs import begin_runs, deadline, is_decided, process_pair, tell


@njit(cache=True, nogil=True)
def concerns(p: RunProgram, x: RunBatch, pattern: Int, row: Int) -> bool:
    """Whether an event could begin a match of a pattern, or is one that a leading NOT takes."""
    state = p.state_from[pattern]
    for step in range(p.step_from[state], p.step_from[state + 1]):
        if x.taken[p.symbol[step], row]:
            return True
    is_lead = False
    for lead in range(p.lead_from[pattern], p.lead_from[pattern + 1]):
        is_lead |= x.taken[p.lead_symbol[lead], row]
    return is_lead


@njit(cache=True, nogil=True)
def renew_due(p: RunProgram, s: RunState, pair: Int) -> None:
    """When a pair has to be looked at again, without a further event."""
    pattern = s.pair_pattern[pair]
    within = p.within[pattern]
    due = LATEST
    run = s.pair_runs[pair]
    while run != NIL:
        kind = s.run_kind[run]
        own = LATEST
        if kind == DECIDED or (kind == PENDING and s.run_lead[run] != EARLIEST):
            own = s.run_due[run] if s.run_due[run] == LATEST else s.run_due[run] + 1
        elif kind == PENDING:
            own = s.run_due[run]
        elif within != LATEST:
            own = s.run_start[run] + within
            if kind == SPENT:
                own = s.event_time[s.node_event[s.run_node[run]]] + within
        due = min(due, own)
        run = s.run_next[run]
    for number in range(s.pair_leads.shape[1] if within != LATEST else 0):
        if s.pair_leads[pair, number, 0] != EARLIEST:
            due = min(due, s.pair_leads[pair, number, 0] + within)
    s.pair_due[pair] = due


@njit(cache=True, nogil=True)
def is_void(s: RunState, pair: Int) -> bool:
    """Whether a pair holds nothing that has to be remembered."""
    if s.pair_runs[pair] != NIL or s.pair_finished[pair]:
        return False
    is_empty = True
    for number in range(s.pair_leads.shape[1]):
        is_empty &= s.pair_leads[pair, number, 0] == EARLIEST
    return is_empty


@njit(cache=True, nogil=True)
def forget(p: RunProgram, s: RunState, pair: Int, time: Int) -> None:
    """Forget what leading NOTs took too long ago; a pair of which nothing is left is closed."""
    within = p.within[s.pair_pattern[pair]]
    for number in range(s.pair_leads.shape[1] if within != LATEST else 0):
        if s.pair_leads[pair, number, 0] != EARLIEST and s.pair_leads[pair, number, 0] + within <= time:
            s.pair_leads[pair, number] = EARLIEST
    renew_due(p, s, pair)
    if is_void(s, pair):
        close_pair(s, pair)


@njit(cache=True, nogil=True)
def prune(p: RunProgram, s: RunState, x: RunBatch, ended: Ended, pattern: Int, before: Int, after: Int) -> None:
    """End what can no longer complete after the event at hand moved the trace's monitor."""
    start = p.column[p.state_from[pattern]]
    pair = s.pair_slots[find_pair(s, s.now[TRACE], np.int64(pattern))]
    was_possible, is_possible = x.live[before, start], x.live[after, start]
    furthest = p.state_from[pattern]
    if pair != NIL:
        if s.pair_finished[pair] and (p.flags[pattern] & TIMEOUTS) == 0:
            return
        previous = NIL
        run = s.pair_runs[pair]
        while run != NIL:
            following = s.run_next[run]
            state = s.run_state[run]
            if s.run_kind[run] == ACTIVE and not x.live[after, p.column[state]]:
                was_possible = True
                furthest = max(furthest, state)
                if previous == NIL:
                    s.pair_runs[pair] = following
                else:
                    s.run_next[previous] = following
                free_run(s, run)
                s.pair_count[pair] -= 1
            else:
                is_possible = is_possible or s.run_kind[run] != SPENT
                previous = run
            run = following
        forget(p, s, pair, EARLIEST)
    if was_possible and not is_possible:
        place = ended.filled[0]
        ended.filled[0] += 1
        ended.rows[place, 0] = s.now[ROW]
        ended.rows[place, 1] = pattern
        ended.rows[place, 2] = before
        ended.rows[place, 3] = after
        ended.rows[place, 4] = furthest


@njit(cache=True, nogil=True)
def finish_pair(p: RunProgram, s: RunState, found: Found, pair: Int, ended: Int, last: Int) -> None:
    """The trace has ended: what waits for that is complete.

    ``ended`` is the time of the end event, which decides everything; where it is ``LATEST`` the input has ended, and
    ``last``, the time of the trace's last event, decides what has no deadline.
    """
    s.now[PATTERN] = s.pair_pattern[pair]
    s.now[WRITTEN] = 0
    run = s.pair_runs[pair]
    while run != NIL:
        if s.run_kind[run] == PENDING:
            due = s.run_due[run]
            if due == LATEST:
                slots = s.run_bits[run, GREEDY] if s.run_lead[run] == EARLIEST else NOTHING
                due = deadline(p, s, run, slots, np.int64(last))
            s.run_due[run] = min(due, ended)
            s.run_kind[run] = DECIDED
            if p.flags[s.now[PATTERN]] == 0:
                tell(s, found, s.run_node[run], s.run_due[run], np.int64(LATEST))
        run = s.run_next[run]


@njit(cache=True, nogil=True)
def meet_pair(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, found: Found, ended: Ended, pattern: Int, limits: Limits
) -> Int:
    """Let a pattern meet the event at hand in its trace.

    Returns:
        ``DONE``, or before anything has changed ``NO_ROOM``, or ``FLUSH`` with the pair in ``STOP_PAIR``.
    """
    row = s.now[ROW]
    place = find_pair(s, s.now[TRACE], np.int64(pattern))
    pair = s.pair_slots[place]
    if pair == NIL and not concerns(p, x, pattern, row):
        return DONE
    count = np.int64(0) if pair == NIL else np.int64(s.pair_count[pair])
    if pair != NIL:
        if s.pair_finished[pair] and (p.flags[pattern] & TIMEOUTS) == 0:
            return DONE
        if p.flags[pattern] != 0 and s.pair_due[pair] <= s.now[TIME]:
            s.counters[STOP_PAIR] = pair
            return FLUSH
    need = (count + 1) * (limits.width + 1)
    s.counters[NEEDED] = need
    if (
        s.counters[NODES] + need > s.node_parent.shape[0]
        or s.counters[RUNS] + 2 * need > s.run_next.shape[0]
        or s.counters[FILLED] + 2 * need > found.node.shape[0]
        or s.counters[EVENTS] >= s.event_next.shape[0]
        or s.counters[PAIR_FREE] == NIL
        or ended.filled[1] >= ended.lost.shape[0]
    ):
        return NO_ROOM
    if s.now[EVENT] == NIL:
        place_event(s, x)
    if pair == NIL:
        pair = open_pair(s, place, s.now[TRACE], np.int64(pattern))
    s.now[PATTERN] = pattern
    s.now[FRESH] = NIL
    s.now[WRITTEN] = 0
    s.now[UNTOLD] = 0
    s.now[LOST] = 0
    s.now[BUDGET] = limits.runs - count
    process_pair(p, s, x, c, found, pair, limits.matches)
    begin_runs(p, s, x, c, found, pair, limits.matches)
    if s.now[UNTOLD] > 0 or s.now[LOST] > 0:
        lost = ended.lost[ended.filled[1]]
        lost[0], lost[1], lost[2], lost[3] = row, pattern, s.now[UNTOLD], s.now[LOST]
        ended.filled[1] += 1
    forget(p, s, pair, s.now[TIME])
    return DONE


@njit(cache=True, nogil=True)
def meet_patterns(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, found: Found, ended: Ended, limits: Limits
) -> Int:
    """Let all patterns that listen meet the event at hand; ``counters[LISTENER]`` says how far it came."""
    code = x.types[s.now[ROW]]
    begin, end = p.listen_from[code], p.listen_from[code + 1]
    for listener in range(begin + s.counters[LISTENER], end):
        status = meet_pair(p, s, x, c, found, ended, p.listeners[listener], limits)
        if status != DONE:
            s.counters[LISTENER] = listener - begin
            return status
    s.counters[LISTENER] = end - begin
    return DONE


@njit(cache=True, nogil=True)
def end_trace(p: RunProgram, s: RunState, found: Found) -> Int:
    """Finish and close the pairs of the trace at hand; stops for each pair whose matches are ranked."""
    time = s.now[TIME]
    while s.trace_pairs[s.now[TRACE]] != NIL:
        pair = s.trace_pairs[s.now[TRACE]]
        if p.flags[s.pair_pattern[pair]] != 0:
            finish_pair(p, s, found, pair, time, time)
            s.counters[STOP_PAIR] = pair
            return CLOSE
        s.counters[NEEDED] = s.pair_count[pair]
        if s.counters[FILLED] + s.pair_count[pair] > found.node.shape[0]:
            return NO_ROOM
        finish_pair(p, s, found, pair, time, time)
        close_pair(s, pair)
    return DONE


@njit(cache=True, nogil=True)
def match_rows(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, found: Found, ended: Ended, first: Int, limits: Limits
) -> tuple[Int, Int]:
    """Process visits from ``first`` on; stops where the wrapper has to make room or to rank matches.

    Returns:
        (status, visit): ``DONE``, or why it stopped; ``counters[LISTENER]`` says where within the visit.
    """
    p, s, x, c, found, ended = borrowed(p), borrowed(s), borrowed(x), borrowed(c), borrowed(found), borrowed(ended)
    patterns = p.flags.shape[0]
    for visit in range(first, x.types.shape[0]):
        s.now[ROW] = visit
        s.now[TIME] = x.times[visit]
        s.now[ORDER] = x.orders[visit]
        s.now[TRACE] = x.traces[visit]
        s.now[MONITOR] = x.after[visit]
        if s.counters[LISTENER] == 0:
            s.now[EVENT] = NIL
        status = meet_patterns(p, s, x, c, found, ended, limits)
        if status == DONE and x.ends[visit]:
            status = end_trace(p, s, found)
        elif status == DONE and x.before[visit] != x.after[visit]:
            if ended.filled[0] + patterns > ended.rows.shape[0]:
                return NO_ROOM, visit
            for pattern in range(patterns):
                prune(p, s, x, ended, pattern, x.before[visit], x.after[visit])
        if status != DONE:
            return status, visit
        if s.now[EVENT] != NIL:
            s.event_references[s.now[EVENT]] -= 1
            if s.event_references[s.now[EVENT]] == 0:
                release_event(s, np.int32(s.now[EVENT]))
        s.counters[LISTENER] = 0
        s.counters[PEAK_EVENTS] = max(s.counters[PEAK_EVENTS], s.counters[EVENTS])
    return DONE, x.types.shape[0]


@njit(cache=True, nogil=True)
def pass_time(p: RunProgram, s: RunState, found: Found, pairs: NDArray[np.int32], first: Int, watermark: Int) -> Int:
    """Let the watermark reach pairs that are due and whose patterns rank nothing; returns how many were done."""
    p, s, found = borrowed(p), borrowed(s), borrowed(found)
    for place in range(first, pairs.shape[0]):
        pair = pairs[place]
        if s.counters[FILLED] + s.pair_count[pair] > found.node.shape[0]:
            s.counters[NEEDED] = s.pair_count[pair]
            return np.int64(place)
        pattern = s.pair_pattern[pair]
        s.now[PATTERN], s.now[TRACE], s.now[ROW], s.now[WRITTEN] = pattern, s.pair_trace[pair], NIL, 0
        previous = NIL
        run = s.pair_runs[pair]
        while run != NIL:
            following = s.run_next[run]
            is_over = s.run_kind[run] == ACTIVE and watermark - s.run_start[run] >= p.within[pattern]
            if s.run_kind[run] == PENDING and is_decided(p, s, run, watermark, np.bool_(False)):
                tell(s, found, s.run_node[run], s.run_due[run], np.int64(LATEST))
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
        forget(p, s, pair, watermark)
    return np.int64(pairs.shape[0])


@njit(cache=True, nogil=True)
def chain_lengths(s: RunState, nodes: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
    """Number of bound events of each chain."""
    for place in range(nodes.shape[0]):
        node, size = nodes[place], 0
        while node != NIL:
            size += 1
            node = s.node_parent[node]
        lengths[place] = size


@njit(cache=True, nogil=True)
def unroll(
    s: RunState,
    nodes: NDArray[np.int32],
    ends: NDArray[np.int64],
    atoms: NDArray[np.int32],
    sequences: NDArray[np.int64],
    releases: bool,
) -> None:
    """Write chains out, oldest event first; ``ends`` are the places behind each."""
    for place in range(nodes.shape[0]):
        node, at = nodes[place], ends[place]
        while node != NIL:
            at -= 1
            atoms[at] = s.node_atom[node]
            sequences[at] = s.event_sequence[s.node_event[node]]
            node = s.node_parent[node]
        if releases:
            release_node(s, nodes[place])
