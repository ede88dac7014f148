"""The memory of (trace, pattern) pairs, runs, nodes and events, each with an arena and a free list."""

from __future__ import annotations

import numpy as np

from nfa.kernels.runs.tables import (
    EARLIEST,
    EVENT,
    EVENT_FREE,
    EVENTS,
    FRESH,
    LATEST,
    N_BITS,
    NIL,
    NODE_FREE,
    NODES,
    NOTHING,
    ORDER,
    PAIR_FREE,
    PAIRS,
    ROW,
    RUN_FREE,
    RUNS,
    Int,
    RunBatch,
    RunState,
)
from streams.kernels.compiling import routine


@routine
def find_pair(s: RunState, trace: Int, pattern: Int) -> Int:
    """Return the position of a (trace, pattern) pair in the index, or an empty position for a new pair."""
    mask = np.int64(s.pair_slots.shape[0] - 1)
    place = (np.int64(trace) * 2654435761 + np.int64(pattern) * 40503) & mask
    while s.pair_slots[place] != NIL:
        pair = s.pair_slots[place]
        if s.pair_trace[pair] == trace and s.pair_pattern[pair] == pattern:
            break
        place = (place + 1) & mask
    return place


@routine
def open_pair(s: RunState, place: Int, trace: Int, pattern: Int) -> Int:
    """Create a pair at the empty position ``place`` of the index. The arena must have room."""
    pair = np.int32(s.counters[PAIR_FREE])
    s.counters[PAIR_FREE] = s.pair_next[pair]
    s.counters[PAIRS] += 1
    s.pair_slots[place] = pair
    s.pair_trace[pair] = trace
    s.pair_pattern[pair] = pattern
    s.pair_runs[pair], s.pair_parked[pair] = NIL, NIL
    s.pair_parked_due[pair], s.pair_visits[pair], s.pair_is_loose[pair] = LATEST, 0, False
    s.pair_count[pair] = 0
    s.pair_due[pair] = LATEST
    s.pair_finished[pair] = False
    s.pair_told[pair] = 0
    s.pair_work[pair] = 0
    for number in range(s.pair_leads.shape[1]):
        s.pair_leads[pair, number, 0] = s.pair_leads[pair, number, 1] = EARLIEST
    s.pair_next[pair] = s.trace_pairs[trace]
    s.trace_pairs[trace] = pair
    return pair


@routine
def rebuild_index(s: RunState) -> None:
    """Fill an empty index with the pairs of all traces."""
    for trace in range(s.trace_pairs.shape[0]):
        pair = s.trace_pairs[trace]
        while pair != NIL:
            s.pair_slots[find_pair(s, np.int64(trace), np.int64(s.pair_pattern[pair]))] = pair
            pair = s.pair_next[pair]


@routine
def enter_bucket(s: RunState, run: Int) -> None:
    """Put a parked run at the front of its bucket, a list of runs with equal hash."""
    slot = s.run_hash[run] & np.uint64(s.buckets.shape[0] - 1)
    head = s.buckets[slot]
    s.bucket_next[run], s.bucket_before[run] = head, NIL
    if head != NIL:
        s.bucket_before[head] = run
    s.buckets[slot] = run


@routine
def leave_bucket(s: RunState, run: Int) -> None:
    """Remove a run from its bucket, the list of runs with equal hash."""
    following, before = s.bucket_next[run], s.bucket_before[run]
    if following != NIL:
        s.bucket_before[following] = before
    if before != NIL:
        s.bucket_next[before] = following
    else:
        s.buckets[s.run_hash[run] & np.uint64(s.buckets.shape[0] - 1)] = following


@routine
def leave(s: RunState, run: Int) -> None:
    """Remove a parked run (indexed by state and value) from its pair's list and from its bucket.

    ``run_next`` does not change, so a walk can continue.
    """
    leave_bucket(s, run)
    following, before, pair = s.run_next[run], s.run_before[run], s.run_pair[run]
    if following != NIL:
        s.run_before[following] = before
    if before != NIL:
        s.run_next[before] = following
    else:
        s.pair_parked[pair] = following


@routine
def free_runs(s: RunState, pair: Int) -> None:
    """Release all runs of a pair."""
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        free_run(s, run)
        run = following
    while s.pair_parked[pair] != NIL:
        run = s.pair_parked[pair]
        leave(s, run)
        free_run(s, run)


@routine
def give_up_pair(s: RunState, pair: Int) -> None:
    """Give up a pair because it took too much work. Its data are dropped, and it ignores further events."""
    free_runs(s, pair)
    s.pair_runs[pair] = NIL
    s.pair_count[pair] = 0
    s.pair_parked_due[pair] = LATEST
    for number in range(s.pair_leads.shape[1]):
        s.pair_leads[pair, number, 0] = s.pair_leads[pair, number, 1] = EARLIEST
    s.pair_work[pair] = LATEST


@routine
def close_pair(s: RunState, pair: Int) -> None:
    """Release a pair and all its runs, and close the gap in the index (backward shift deletion)."""
    free_runs(s, pair)
    trace = np.int64(s.pair_trace[pair])
    mask = np.int64(s.pair_slots.shape[0] - 1)
    gap = find_pair(s, trace, np.int64(s.pair_pattern[pair]))
    place = gap
    while True:
        place = (place + 1) & mask
        other = s.pair_slots[place]
        if other == NIL:
            break
        home = (np.int64(s.pair_trace[other]) * 2654435761 + np.int64(s.pair_pattern[other]) * 40503) & mask
        if ((place - home) & mask) >= ((place - gap) & mask):
            s.pair_slots[gap] = other
            gap = place
    s.pair_slots[gap] = NIL
    if s.trace_pairs[trace] == pair:
        s.trace_pairs[trace] = s.pair_next[pair]
    else:
        before = s.trace_pairs[trace]
        while s.pair_next[before] != pair:
            before = s.pair_next[before]
        s.pair_next[before] = s.pair_next[pair]
    s.pair_pattern[pair] = NIL
    s.pair_next[pair] = s.counters[PAIR_FREE]
    s.counters[PAIR_FREE] = pair
    s.counters[PAIRS] -= 1


@routine
def release_event(s: RunState, event: Int) -> None:
    """Release an event that no node binds."""
    s.event_next[event] = s.counters[EVENT_FREE]
    s.counters[EVENT_FREE] = event
    s.counters[EVENTS] -= 1


@routine
def release_node(s: RunState, node: Int) -> None:
    """Drop one reference to a chain of nodes. Nodes without any other reference are released."""
    while node != NIL:
        s.node_references[node] -= 1
        if s.node_references[node] > 0:
            return
        event = s.node_event[node]
        s.event_references[event] -= 1
        if s.event_references[event] == 0:
            release_event(s, event)
        parent = s.node_parent[node]
        s.node_parent[node] = s.counters[NODE_FREE]
        s.counters[NODE_FREE] = node
        s.counters[NODES] -= 1
        node = parent


@routine
def free_run(s: RunState, run: Int) -> None:
    """Release a run that is in no list."""
    release_node(s, s.run_node[run])
    s.run_kind[run] = NIL
    s.run_next[run] = s.counters[RUN_FREE]
    s.counters[RUN_FREE] = run
    s.counters[RUNS] -= 1


@routine
def new_run(s: RunState, node: Int, state: Int, kind: Int) -> Int:
    """Create a run for the chain that ends at ``node``, and add it to the new runs of the current event.

    All gaps of the run are open.
    """
    run = np.int32(s.counters[RUN_FREE])
    s.counters[RUN_FREE] = s.run_next[run]
    s.counters[RUNS] += 1
    s.node_references[node] += 1
    s.run_node[run] = node
    s.run_state[run] = state
    s.run_kind[run] = kind
    s.run_finish[run] = 0
    s.run_muted[run] = False
    s.run_how[run] = 0
    for column in range(N_BITS):
        s.run_bits[run, column] = NOTHING
    s.run_bits_order[run] = s.now[ORDER]
    s.run_due[run] = LATEST
    s.run_lead[run] = EARLIEST
    s.run_next[run] = s.now[FRESH]
    s.now[FRESH] = run
    return run


@routine
def place_event(s: RunState, x: RunBatch) -> None:
    """Copy the current event into the arena. The copy is released after the row, unless a node binds the event."""
    event = np.int32(s.counters[EVENT_FREE])
    s.counters[EVENT_FREE] = s.event_next[event]
    s.counters[EVENTS] += 1
    row = s.now[ROW]
    s.event_sequence[event] = x.sequences[row]
    s.event_time[event] = x.times[row]
    s.event_order[event] = x.orders[row]
    s.event_references[event] = 1  # the reference of the row, until the row is finished
    for column in range(x.kinds.shape[1]):
        s.event_kinds[event, column] = x.kinds[row, column]
        s.event_values[event, column] = x.values[row, column]
    s.now[EVENT] = event
