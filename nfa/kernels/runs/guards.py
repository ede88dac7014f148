"""Effects of a guard on runs: partial matches are dropped, waiting matches become certain, and traces fail.

Sources: the monitor automaton of C-CEP, its reaction to violations, and early certainty (constraint-aware CEP, sections
4.2, 4.4, 4.6 and 6.3).
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.runs.arena import close_pair, find_pair, free_run
from nfa.kernels.runs.dues import expire, forget, note_reported
from nfa.kernels.runs.parking import unpark
from nfa.kernels.runs.ranks import has_to_rank
from nfa.kernels.runs.tables import (
    ACTIVE,
    AFTER,
    BEFORE,
    CLOCK,
    DECIDED,
    DONE,
    EARLIEST,
    FAIL,
    FILLED,
    FLUSH,
    HAS_REPORTED,
    KILLED,
    LATEST,
    LISTENER,
    MARK,
    NEEDED,
    NIL,
    NO_ROOM,
    PATTERN,
    PENDING,
    RELEASED,
    ROW,
    STOP_PAIR,
    TIME,
    TIMEOUTS,
    TRACE,
    UNASKED,
    WRITTEN,
    Ended,
    Int,
    RunBatch,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.waits import hasten
from nfa.kernels.traces import BY_QUERY, EVICT
from streams.kernels.compiling import routine


@routine
def mark_chain(s: RunState, run: Int) -> Int:
    """Mark the bound events of a run, and return the number of events that were not marked before.

    The walk stops at the first marked node, because the nodes before it are marked, too.
    """
    mark, node, count = s.counters[MARK], s.run_node[run], np.int64(0)
    while node != NIL and s.node_mark[node] != mark:
        s.node_mark[node] = mark
        event = s.node_event[node]
        count += s.event_mark[event] != mark
        s.event_mark[event] = mark
        node = s.node_parent[node]
    return count


@routine
def is_droppable(p: RunProgram, s: RunState, run: Int) -> bool:
    """Return whether a guard may drop a run: a partial match, or a complete match that waits for a trailing NOT."""
    if s.run_kind[run] == PENDING:
        finish = p.finish_from[s.run_state[run]] + s.run_finish[run]
        return bool(p.trail_from[finish] != p.trail_from[finish + 1])
    return bool(s.run_kind[run] == ACTIVE)


@routine
def give_up(p: RunProgram, s: RunState, x: RunBatch, pair: Int, row: Int) -> None:
    """Drop the runs of a pair that can no longer complete according to ``live[row]``, a row of the guard's tables.

    If ``row`` is ``NIL``, drop all runs that a guard may drop.
    """
    gone, previous = NIL, NIL
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        if is_droppable(p, s, run) and (row == NIL or x.gates.live[row, p.column[s.run_state[run]]] == 0):
            if previous == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[previous] = following
            s.pair_count[pair] -= 1
            s.run_next[run] = gone
            gone = np.int64(run)
        else:
            previous = np.int64(run)
        run = following
    if gone == NIL:
        return
    s.counters[MARK] += 1
    run = s.pair_runs[pair]
    while run != NIL:
        mark_chain(s, run)
        run = s.run_next[run]
    while gone != NIL:
        run = np.int32(gone)
        gone = np.int64(s.run_next[run])
        released = mark_chain(s, run)
        x.gates.released[s.now[TRACE]] += released
        s.counters[RELEASED] += released
        free_run(s, run)


@routine
def is_out(p: RunProgram, s: RunState, pair: Int, pattern: Int) -> bool:
    """Return whether a pair can emit no more matches.

    Either its only match was emitted, or the pair was given up because it took too much work.
    """
    is_finished = s.pair_finished[pair] and (p.flags[pattern] & TIMEOUTS) == 0
    return bool(is_finished or s.pair_work[pair] == LATEST)


@routine
def prune(p: RunProgram, s: RunState, x: RunBatch, ended: Ended, pair: Int, pattern: Int) -> None:
    """Apply the guard's policy to the partial matches of a pair that can no longer complete.

    If the pattern can no longer complete in the trace, its early termination is reported.
    """
    live, before, after = x.gates.live, x.gates.truth[s.now[BEFORE]], x.gates.truth[s.now[AFTER]]
    policy, furthest = x.gates.policy[s.now[BEFORE]], p.state_from[pattern]
    was_possible, is_possible = live[before, p.column[furthest]] != 0, live[after, p.column[furthest]] != 0
    if pair != NIL:
        if is_out(p, s, pair, pattern):
            return
        if s.pair_parked[pair] != NIL:
            unpark(s, np.int32(pair))
        has_reported, is_any_dead = s.pair_told[pair] == HAS_REPORTED, False
        run = s.pair_runs[pair]
        while run != NIL:
            state, kind = s.run_state[run], s.run_kind[run]
            has_reported |= policy == BY_QUERY and kind == DECIDED
            if kind in (ACTIVE, PENDING):
                is_open = live[after, p.column[state]] != 0 or not is_droppable(p, s, run)
                was_open = live[before, p.column[state]] != 0
                is_possible |= is_open
                was_possible |= was_open
                is_any_dead |= not is_open
                if was_open and not is_open:
                    furthest = max(furthest, state)
            run = s.run_next[run]
        is_possible |= has_reported
        if policy == EVICT and is_any_dead:
            give_up(p, s, x, pair, np.int64(after))
        elif policy == BY_QUERY and not is_possible and is_any_dead:
            give_up(p, s, x, pair, NIL)
        forget(p, s, pair, EARLIEST)
    if was_possible and not is_possible:
        place = ended.filled[0]
        ended.filled[0] += 1
        ended.rows[place, 0] = s.now[ROW]
        ended.rows[place, 1] = pattern
        ended.rows[place, 2] = s.now[BEFORE]
        ended.rows[place, 3] = s.now[AFTER]
        ended.rows[place, 4] = furthest


@routine
def update_deadlines(p: RunProgram, s: RunState, x: RunBatch, out: RunMatches, pair: Int) -> None:
    """Update the deadlines of a pair's waiting matches, and decide the matches that are due.

    The monitor state after the event shows which NOTs can no longer fail. These NOTs no longer delay a match.
    """
    s.now[PATTERN], s.now[WRITTEN] = s.pair_pattern[pair], 0
    filled, previous = s.counters[FILLED], NIL
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        is_waiting = s.run_kind[run] == PENDING and is_droppable(p, s, run) and s.run_due[run] > s.now[CLOCK]
        if is_waiting and not hasten(p, s, x, out, run):
            if previous == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[previous] = following
            free_run(s, run)
            s.pair_count[pair] -= 1
        else:
            previous = np.int64(run)
        run = following
    note_reported(s, pair, filled)
    forget(p, s, pair, EARLIEST)


@routine
def catch_up(p: RunProgram, s: RunState, out: RunMatches, pair: Int) -> Int:
    """Advance the time of a pair to the current event, even if the pair then skips the event.

    Returns ``DONE``, or the reason why nothing was done. ``NO_ROOM`` means that the results are full. ``FLUSH`` means
    that the matches of the pair ``counters[STOP_PAIR]`` must be ranked.
    """
    if s.counters[FILLED] + s.pair_count[pair] > out.node.shape[0]:
        s.counters[NEEDED] = s.pair_count[pair]
        return NO_ROOM
    if s.pair_due[pair] > s.now[CLOCK]:
        return DONE
    if has_to_rank(p, s, pair):
        s.counters[STOP_PAIR] = pair
        return FLUSH
    expire(p, s, out, pair, s.now[CLOCK])
    return DONE


@routine
def catch_up_trace(p: RunProgram, s: RunState, out: RunMatches) -> Int:
    """Advance the time of all pairs of the trace before an event that is out of order.

    Decisions are also made at the end of each batch, and an old event must not change them. Otherwise results would
    depend on the division into batches. Returns the status of ``catch_up``. If some patterns have already processed the
    event, the call does nothing.
    """
    if s.now[TIME] >= s.now[CLOCK] or s.counters[LISTENER] != 0:
        return DONE
    pair = s.trace_pairs[s.now[TRACE]]
    while pair != NIL:
        following = s.pair_next[pair]
        if s.pair_due[pair] <= s.now[CLOCK]:
            status = catch_up(p, s, out, pair)
            if status != DONE:
                return status
        pair = following
    return DONE


@routine
def kill(p: RunProgram, s: RunState, x: RunBatch, out: RunMatches, ended: Ended, number: Int) -> Int:
    """Apply a guard's list of kills: first the NOTs whose event can no longer occur, then the states that are dead.

    Returns the status of ``catch_up``. A repeated call resumes at ``counters[KILLED]``.
    """
    gates, n_columns = x.gates, p.pattern_at.shape[0]
    first, size = gates.kill_from[number], gates.kill_from[number + 1] - gates.kill_from[number]
    for place in range(s.counters[KILLED], 2 * size):
        s.counters[KILLED] = place
        column = gates.kills[first + place % size]
        if column >= n_columns:
            continue
        is_certain = place < size
        pattern = p.waits_at[column] if is_certain else p.pattern_at[column]
        is_seen = not is_certain and place > size and p.pattern_at[gates.kills[first + place - size - 1]] == pattern
        if pattern == NIL or is_seen or p.is_suspended[pattern]:
            continue
        pair = s.pair_slots[find_pair(s, s.now[TRACE], np.int64(pattern))]
        if pair != NIL:
            status = catch_up(p, s, out, pair)
            if status != DONE:
                return status
            pair = s.pair_slots[find_pair(s, s.now[TRACE], np.int64(pattern))]
        if not is_certain:
            prune(p, s, x, ended, pair, pattern)
        elif pair != NIL:
            update_deadlines(p, s, x, out, pair)
    s.counters[KILLED] = 0
    return DONE


@routine
def reopen(p: RunProgram, s: RunState, x: RunBatch, out: RunMatches) -> None:
    """Restore the full deadlines of waiting matches in a trace, because the current event broke a constraint.

    The trace is no longer pruned, so the guard can no longer decide these matches early.
    """
    pair = s.trace_pairs[s.now[TRACE]]
    while pair != NIL:
        following = s.pair_next[pair]
        s.pair_told[pair] = UNASKED
        update_deadlines(p, s, x, out, pair)
        pair = following


@routine
def fail_trace(p: RunProgram, s: RunState, out: RunMatches) -> Int:
    """Drop all data of a trace, because the current event broke a constraint.

    Matches that are already decided are emitted. Returns ``FAIL`` at a pair whose matches must be ranked first,
    ``NO_ROOM`` if the results are full, or ``DONE``.
    """
    while s.trace_pairs[s.now[TRACE]] != NIL:
        pair = s.trace_pairs[s.now[TRACE]]
        if has_to_rank(p, s, pair):
            s.counters[STOP_PAIR] = pair
            return FAIL
        if s.pair_due[pair] > s.now[CLOCK]:
            close_pair(s, pair)
        elif catch_up(p, s, out, pair) != DONE:
            return NO_ROOM
    return DONE
