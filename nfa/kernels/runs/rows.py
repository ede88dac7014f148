"""The run kernel's main loop, which reads visits (relevant rows) and writes matches, early terminations and losses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs.advancing import begin_runs, is_startable, note_leads, process_pair, process_parked, take_fresh
from nfa.kernels.runs.arena import (
    close_pair,
    find_pair,
    free_run,
    give_up_pair,
    open_pair,
    place_event,
    release_event,
    release_node,
)
from nfa.kernels.runs.dues import forget, note_reported
from nfa.kernels.runs.guards import catch_up, catch_up_trace, fail_trace, kill, reopen
from nfa.kernels.runs.parking import settle_runs, sweep
from nfa.kernels.runs.ranks import emit_ready, has_to_rank
from nfa.kernels.runs.tables import (
    AFTER,
    BEFORE,
    BUDGET,
    BY_TRACE_END,
    BY_WINDOW,
    CAPPED,
    CEILING,
    CLOCK,
    CLOSE,
    DECIDED,
    DONE,
    EARLIEST,
    EVENT,
    EVENTS,
    FILLED,
    FRESH,
    GIVEN_UP,
    GREEDY,
    HEARD,
    KILLED,
    LATEST,
    LISTENER,
    LOST,
    MATCH,
    NEEDED,
    NIL,
    NO_ROOM,
    NODES,
    NOT_REPORTED_YET,
    NOT_WAITED,
    NOTHING,
    ORDER,
    PAIR_FREE,
    PATTERN,
    PEAK_EVENTS,
    PENDING,
    READY,
    ROW,
    RUNS,
    STEPS,
    STOP_PAIR,
    TIME,
    TIMEOUTS,
    TRACE,
    WRITTEN,
    Conditions,
    Ended,
    Int,
    Limits,
    RunBatch,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.timeouts import time_out
from nfa.kernels.runs.waits import deadline, hand_out
from nfa.kernels.traces import BY_QUERY, DEVIANT, FAILED, NOTHING_ENDS
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel, routine

SWEEP_SHARE = 8  # a scan of n parked runs is due after n / SWEEP_SHARE events


@routine
def concerns(p: RunProgram, x: RunBatch, pattern: Int, row: Int, can_begin: bool) -> bool:
    """Return whether an event can start a match of a pattern or matches one of its leading NOTs.

    Without ``can_begin``, only leading NOTs count.
    """
    state = p.state_from[pattern]
    for step in range(p.step_from[state], p.step_from[state + 1] if can_begin else p.step_from[state]):
        if x.taken[p.symbol[step], row]:
            return True
    is_lead = False
    for lead in range(p.lead_from[pattern], p.lead_from[pattern + 1]):
        is_lead |= x.taken[p.lead_symbol[lead], row]
    return is_lead


@routine
def finish_pair(p: RunProgram, s: RunState, out: RunMatches, pair: Int, ended: Int, last: Int) -> None:
    """Decide the waiting matches of a pair whose trace has ended.

    If an event ended the trace, ``ended`` is the time of this event, and all conditions are decided at this time at the
    latest. If the input has ended, ``ended`` is ``LATEST``. Conditions without a deadline are decided at ``last``, the
    time of the last event.
    """
    s.now[PATTERN], s.now[TRACE] = s.pair_pattern[pair], s.pair_trace[pair]
    s.now[WRITTEN] = 0
    run = s.pair_runs[pair]
    while run != NIL:
        if s.run_kind[run] == PENDING:
            due, how = s.run_due[run], np.int64(BY_WINDOW if s.run_how[run] == NOT_WAITED else s.run_how[run])
            if due == LATEST:
                slots = s.run_bits[run, GREEDY] if s.run_lead[run] == EARLIEST else NOTHING
                due = deadline(p, s, run, slots, np.int64(last))
                how = np.int64(BY_TRACE_END if due == last else BY_WINDOW)
            if due > ended:
                due, how = np.int64(ended), np.int64(BY_TRACE_END)
            s.run_due[run], s.run_how[run], s.run_kind[run] = due, how, DECIDED
            if p.flags[s.now[PATTERN]] == 0:
                hand_out(s, out, s.run_node[run], due, how, MATCH)
        run = s.run_next[run]


@routine
def has_room(s: RunState, out: RunMatches, ended: Ended, need: Int) -> bool:
    """Return whether all arrays have room for an event that creates at most ``need`` nodes."""
    return not (
        s.counters[NODES] + need > s.node_parent.shape[0]
        or s.counters[RUNS] + 2 * need > s.run_next.shape[0]
        or s.counters[FILLED] + 2 * need > out.node.shape[0]
        or s.counters[EVENTS] >= s.event_next.shape[0]
        or s.counters[PAIR_FREE] == NIL
        or ended.filled[1] >= ended.lost.shape[0]
    )


@routine
def meet_pair(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, ended: Ended, pattern: Int, limits: Limits
) -> Int:
    """Process the current event for a pattern in the event's trace.

    Returns ``DONE``, or ``NO_ROOM`` or ``FLUSH`` if nothing was changed yet. Returns ``GIVEN_UP`` if the pair was given
    up after it processed the event. A repeated call then does nothing. ``FLUSH`` and ``GIVEN_UP`` leave the pair in
    ``STOP_PAIR``.
    """
    row = s.now[ROW]
    place = find_pair(s, s.now[TRACE], np.int64(pattern))
    pair = s.pair_slots[place]
    if pair != NIL and s.pair_work[pair] == LATEST:
        return DONE
    is_due = pair != NIL and p.flags[pattern] != 0 and s.pair_due[pair] <= s.now[CLOCK]
    if is_due and ((p.flags[pattern] & TIMEOUTS) != 0 or has_to_rank(p, s, pair)):
        status = catch_up(p, s, out, pair)
        if status != DONE:
            return status
        place = find_pair(s, s.now[TRACE], np.int64(pattern))
        pair = s.pair_slots[place]
    can_begin = is_startable(p, s, x, pattern, pair)
    if pair == NIL and not concerns(p, x, pattern, row, can_begin):
        return DONE
    count = np.int64(0) if pair == NIL else np.int64(s.pair_count[pair])
    if pair != NIL and s.pair_finished[pair] and (p.flags[pattern] & TIMEOUTS) == 0:
        if count == 0:
            return DONE
        can_begin = False
    s.counters[NEEDED] = (count + 1) * (limits.width + 1)
    if not has_room(s, out, ended, s.counters[NEEDED]):
        return NO_ROOM
    if pair == NIL:
        pair = open_pair(s, place, s.now[TRACE], np.int64(pattern))
    if not run_pair(p, s, x, c, out, ended, pair, limits, can_begin):
        return DONE
    s.counters[STOP_PAIR] = pair
    return GIVEN_UP


@routine
def look_after_parked(p: RunProgram, s: RunState, pair: Int, limits: Limits) -> None:
    """Park runs of a pair whose state allows parking, and from time to time release expired parked runs.

    The release scans all parked runs. To amortize this cost, the scan waits until enough events have arrived since the
    last scan. If the pair is close to its limit of runs, every event causes a scan.
    """
    if s.pair_is_loose[pair]:
        settle_runs(p, s, pair)
    s.pair_visits[pair] += 1
    if s.pair_parked_due[pair] <= s.now[CLOCK]:
        is_tight = s.pair_count[pair] * (limits.width + 1) >= limits.runs
        if is_tight or SWEEP_SHARE * s.pair_visits[pair] >= s.pair_count[pair]:
            sweep(s, pair, s.now[CLOCK])


@routine
def ceiling(p: RunProgram, s: RunState, x: RunBatch, pattern: Int) -> Int:
    """Return the work that a pattern may still take in all traces together.

    The limit is ``work_in_all``. The work so far counts against it, but decreases by the pattern's allowance with each
    event since the pattern last worked.
    """
    allowance, work = p.allowance[pattern], p.worked[pattern]
    events = x.sequences[s.now[ROW]] - p.worked_at[pattern]
    if allowance > 0 and events > work // allowance:
        return np.int64(p.work_in_all[pattern])
    return np.int64(p.work_in_all[pattern] - work + events * allowance)


@routine
def forget_matches(s: RunState, out: RunMatches, filled: Int) -> None:
    """Drop the matches that the current event completed.

    This is done if the work limit was reached before all runs were processed. Otherwise, the matches would depend on
    the order of the runs.
    """
    kept = np.int64(filled)
    for place in range(filled, s.counters[FILLED]):
        node = out.node[place]
        if out.what[place] == MATCH and s.node_event[node] == s.now[EVENT]:
            release_node(s, node)
            continue
        out.node[kept], out.pattern[kept], out.row[kept] = node, out.pattern[place], out.row[place]
        out.trace[kept], out.detected[kept] = out.trace[place], out.detected[place]
        out.how[kept], out.what[kept] = out.how[place], out.what[place]
        kept += 1
    s.counters[FILLED] = kept
    while s.now[READY] != NIL:
        run = np.int32(s.now[READY])
        s.now[READY] = s.run_next[run]
        free_run(s, run)
    s.now[CAPPED], s.now[LOST] = 0, 0


@routine
def count_work(p: RunProgram, s: RunState, x: RunBatch, pair: Int) -> Int:
    """Add the work of the current event, less an allowance, to the work of the pair and of the pattern.

    Returns 0, or the work if it exceeds a limit. In this case, the pair is given up. Runs that ended or were decided
    before the event do not count. Therefore, the counts depend on the events alone.
    """
    pattern = s.pair_pattern[pair]
    work = max(s.pair_work[pair] + s.now[STEPS] - p.allowance[pattern], np.int64(0))
    s.pair_work[pair] = work
    if s.now[STEPS] > 0:
        p.worked[pattern] = p.work_in_all[pattern] - s.now[CEILING] + s.now[STEPS]
        p.worked_at[pattern] = x.sequences[s.now[ROW]]
    if s.now[STEPS] > s.now[CEILING]:
        p.worked[pattern] = work = p.work_in_all[pattern] + 1  # the exact excess depends on the order of runs
    elif work <= p.work[pattern]:
        return np.int64(0)
    give_up_pair(s, pair)
    return np.int64(work)


@routine
def run_pair(
    p: RunProgram,
    s: RunState,
    x: RunBatch,
    c: Conditions,
    out: RunMatches,
    ended: Ended,
    pair: Int,
    limits: Limits,
    can_begin: bool,
) -> bool:
    """Process the current event in a pair, and return whether the pair is given up.

    The arrays must have room for the event.
    """
    pattern = s.pair_pattern[pair]
    place_event(s, x)
    look_after_parked(p, s, pair, limits)
    if x.gates.policy[s.now[AFTER]] == BY_QUERY:
        s.pair_told[pair] = max(s.pair_told[pair], np.int8(NOT_REPORTED_YET))
    s.now[PATTERN] = pattern
    s.now[FRESH], s.now[READY] = NIL, NIL
    s.now[WRITTEN] = 0
    s.now[CAPPED] = 0
    s.now[LOST], s.now[STEPS] = 0, 0
    s.now[BUDGET] = limits.runs - s.pair_count[pair]
    s.now[CEILING] = ceiling(p, s, x, pattern)
    filled = s.counters[FILLED]
    process_parked(p, s, x, c, out, pair, limits.matches)
    process_pair(p, s, x, c, out, pair, limits.matches)
    if can_begin and s.now[STEPS] <= s.now[CEILING]:
        begin_runs(p, s, x, c, out, pair, limits.matches)
    note_leads(p, s, x, c, pair)
    take_fresh(p, s, pair)
    if s.now[STEPS] > s.now[CEILING]:
        forget_matches(s, out, filled)
    emit_ready(p, s, out, pair, limits.matches)
    note_reported(s, pair, filled)
    s.event_references[s.now[EVENT]] -= 1
    if s.event_references[s.now[EVENT]] == 0:
        release_event(s, np.int32(s.now[EVENT]))
    given_up = count_work(p, s, x, pair)
    if s.now[CAPPED] > 0 or s.now[LOST] > 0 or given_up > 0:
        place = ended.filled[1]
        ended.lost[place, 0], ended.lost[place, 1] = s.now[ROW], pattern
        ended.lost[place, 2], ended.lost[place, 3], ended.lost[place, 4] = s.now[CAPPED], s.now[LOST], given_up
        ended.lost[place, 5] = 0
        ended.filled[1] += 1
    forget(p, s, pair, s.now[CLOCK])
    return bool(given_up > 0)


@routine
def meet_patterns(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, ended: Ended, limits: Limits
) -> Int:
    """Process the current event for all patterns that listen to it.

    A repeated call resumes at ``counters[LISTENER]``.
    """
    row, met = s.now[ROW], np.int64(0)
    for part in range(-1, x.cells.shape[0]):
        code = x.types[row] if part < 0 else x.cells[part, row]
        begin = np.int64(p.listen_from[code] if part < 0 else p.cell_begin[code])
        end = np.int64(p.listen_from[code + 1] if part < 0 else p.cell_end[code])
        for listener in range(begin + max(s.counters[LISTENER] - met, 0), end):
            s.now[HEARD] = listener
            pattern = p.listeners[listener]
            status = DONE if p.is_suspended[pattern] else meet_pair(p, s, x, c, out, ended, pattern, limits)
            if status != DONE:
                s.counters[LISTENER] = met + listener - begin
                return status
        met += end - begin
    s.counters[LISTENER] = met
    return DONE


@routine
def end_trace(p: RunProgram, s: RunState, out: RunMatches) -> Int:
    """Finish and close the pairs of the current trace. The call stops at each pair whose matches must be ranked."""
    time = s.now[TIME]
    while s.trace_pairs[s.now[TRACE]] != NIL:
        pair = s.trace_pairs[s.now[TRACE]]
        if has_to_rank(p, s, pair):
            finish_pair(p, s, out, pair, time, time)
            s.counters[STOP_PAIR] = pair
            return CLOSE
        s.counters[NEEDED] = s.pair_count[pair]
        if s.counters[FILLED] + s.pair_count[pair] > out.node.shape[0]:
            return NO_ROOM
        finish_pair(p, s, out, pair, time, time)
        if (p.flags[s.now[PATTERN]] & TIMEOUTS) != 0:
            time_out(p, s, out, pair, LATEST)
        close_pair(s, pair)
    return DONE


@kernel
def match_rows(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, ended: Ended, first: Int, limits: Limits
) -> tuple[Int, Int]:
    """Process visits (relevant rows) from ``first`` on, until the wrapper must make room or rank matches.

    Returns (status, visit). The status is ``DONE``, or the reason why the kernel stopped at the visit. If it stopped,
    ``counters[LISTENER]`` is the index at which to resume, among the patterns that listen to the visit's event.
    """
    p, s, x, c, out, ended = borrowed(p), borrowed(s), borrowed(x), borrowed(c), borrowed(out), borrowed(ended)
    patterns = p.flags.shape[0]
    for visit in range(first, x.types.shape[0]):
        s.now[ROW] = visit
        s.now[TIME] = x.times[visit]
        s.now[CLOCK] = max(x.clocks[visit], x.times[visit])
        s.now[ORDER] = x.orders[visit]
        s.now[TRACE] = x.traces[visit]
        s.now[BEFORE] = x.before[visit]
        s.now[AFTER] = x.after[visit]
        status = catch_up_trace(p, s, out)
        if status == DONE and x.after[visit] == FAILED:
            status = fail_trace(p, s, out)
        elif status == DONE:
            status = meet_patterns(p, s, x, c, out, ended, limits)
        if status == DONE and x.ends[visit]:
            status = end_trace(p, s, out)
        elif status == DONE and x.kill[visit] != NOTHING_ENDS:
            if s.counters[KILLED] == 0 and ended.filled[0] + patterns > ended.rows.shape[0]:
                return NO_ROOM, visit
            status = kill(p, s, x, out, ended, x.kill[visit])
        elif status == DONE and x.after[visit] == DEVIANT and x.before[visit] != DEVIANT:
            reopen(p, s, x, out)
        if status != DONE:
            return status, visit
        s.counters[LISTENER] = 0
        s.counters[PEAK_EVENTS] = max(s.counters[PEAK_EVENTS], s.counters[EVENTS])
    return DONE, x.types.shape[0]


@kernel
def unroll(
    s: RunState,
    nodes: NDArray[np.int32],
    ends: NDArray[np.int64],
    atoms: NDArray[np.int32],
    sequences: NDArray[np.int64],
    releases: bool,
) -> None:
    """Write the events of chains to arrays, oldest first. ``nodes`` has the last node of each chain.

    The events of each chain end before its offset in ``ends``. If ``releases``, one reference to each chain is dropped.
    """
    s = borrowed(s)
    for place in range(nodes.shape[0]):
        node, at = nodes[place], ends[place]
        while node != NIL:
            at -= 1
            atoms[at] = s.node_atom[node]
            sequences[at] = s.event_sequence[s.node_event[node]]
            node = s.node_parent[node]
        if releases:
            release_node(s, nodes[place])
