"""The matching kernel: events in, matches and endings out, every array owned by the caller.

Partial matches are shared, never copied. Each pattern state of a trace holds a *stack* of nodes; a node binds one
instance to one atom and points to the top of its predecessor state's stack as it was then, so that a node stands for
every combination below it. An event costs constant work per transition that listens to it, and enumeration costs work
linear in what it prints, as no path is a dead end. Nodes and instances are counted references in arenas with free
lists: a state that a guard ends gives back at once what no other state reaches. Sources: SASE instance stacks (Wu,
Diao, Rizvi, SIGMOD 2006), CORE's enumerable compact sets (Bucchi et al., VLDB 2022), the monitor automaton of C-CEP
(constraint-aware CEP, section 4.2).

All indices are int32; ``NIL`` is -1. Counts of partial matches are float64: exact to 2**53, and past it large enough.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int: TypeAlias = int | np.int32 | np.int64

NIL = -1
EARLIEST = np.iinfo(np.int64).min
HOME_BITS = np.uint64(32)  # the low bits of a key's hash chose its shard, the high bits its place in the index

# What the kernel returns: it is done, or stopped before an event for want of something the wrapper supplies.
DONE = 0
MISSING_GUARD = 1  # guards.next at (counters[STOP_MONITOR], type of the row) is not built yet
NODES_FULL = 2
TRACES_FULL = 3
MATCHES_FULL = 4
ENDINGS_FULL = 5

# Reserved monitor states: neither prunes, and only the first says that the trace broke a constraint.
DEVIANT = 0
UNGUARDED = 1

# Indices of State.counters.
NODE_FREE = 0  # head of the free list
INSTANCE_FREE = 1
TRACE_FREE = 2
NODES = 3  # in use
INSTANCES = 4  # in use: the held (pattern, instance) pairs
TRACES = 5  # open
PEAK_INSTANCES = 6  # after an event is fully processed
EVENTS = 7  # before this batch: the sequence number of its first row; the wrapper adds to it
MATCHES = 8
ENDINGS = 9
DEVIATIONS = 10
OVERFLOW = 11  # matches beyond the limit
OUT_OF_ORDER = 12  # events older than the trace's last
STOP_MONITOR = 13
PEAK_NODES = 14
GUARD_STEPS = 15  # events that moved a monitor
N_COUNTERS = 16

# Columns of Output.matches before the bound sequence numbers, and of Output.endings.
MATCH_HEADER = 3  # row, pattern, term
ENDING_WIDTH = 5  # row, pattern (NIL: the trace deviates), monitor before, monitor after, state
DROPPED = -2  # as state: matches beyond the limit; their number stands where the monitors do
MOST_COUNTED = 2**53
IS_ACCEPTING = NIL


class Program(NamedTuple):
    """Compiled patterns; transitions of a type are consecutive, by pattern, larger targets first."""

    listen: NDArray[np.int32]  # (types + 1,) ranges of the transition arrays
    pattern: NDArray[np.int32]
    source: NDArray[np.int32]  # state
    target: NDArray[np.int32]  # state, or IS_ACCEPTING
    atom: NDArray[np.int32]
    predicate: NDArray[np.int32]  # row of Columns.passed
    term: NDArray[np.int32]
    depth: NDArray[np.int32]  # (states,) number of bound atoms
    state_pattern: NDArray[np.int32]  # (states,)
    state_range: NDArray[np.int32]  # (patterns + 1,)
    is_end: NDArray[np.bool_]  # (types,)
    is_notable: NDArray[np.bool_]  # (types,) some pattern listens, or a trace ends


class Guards(NamedTuple):
    """What the guard said so far, as tables over monitor states."""

    next: NDArray[np.int32]  # (monitors, types); NIL: not asked yet
    live: NDArray[np.bool_]  # (monitors, states)
    is_fatal: NDArray[np.bool_]  # (monitors, types) something is killed, or the trace deviates
    kill_from: NDArray[np.int32]  # (monitors, types) ranges of kills
    kill_to: NDArray[np.int32]
    kills: NDArray[np.int32]  # states that live no longer, ascending
    start: NDArray[np.int32]  # (1,) monitor state of a new trace


class State(NamedTuple):
    """Everything that lives from batch to batch."""

    hash_keys: NDArray[np.uint64]  # open addressing, power of two
    hash_traces: NDArray[np.int32]
    trace_key: NDArray[np.uint64]
    trace_time: NDArray[np.int64]  # last event, us
    trace_monitor: NDArray[np.int32]
    trace_next: NDArray[np.int32]  # free list
    heads: NDArray[np.int32]  # (traces, states) top of the stack
    ended: NDArray[np.bool_]  # (traces, patterns)
    node_below: NDArray[np.int32]  # next in the stack; free list
    node_before: NDArray[np.int32]  # top of the predecessor's stack
    node_instance: NDArray[np.int32]
    node_atom: NDArray[np.int32]
    node_references: NDArray[np.int32]
    node_ways: NDArray[np.float64]  # partial matches of this node and all below it
    instance_sequence: NDArray[np.int64]
    instance_references: NDArray[np.int32]
    instance_next: NDArray[np.int32]  # free list
    scratch: NDArray[np.int32]  # (nodes + 2,)
    counters: NDArray[np.int64]


class Columns(NamedTuple):
    """One batch."""

    types: NDArray[np.int32]
    keys: NDArray[np.uint64]
    times: NDArray[np.int64]
    passed: NDArray[np.bool_]  # (predicates, rows)


class Output(NamedTuple):
    """What the kernel found; ``filled`` counts rows of matches and endings."""

    matches: NDArray[np.int64]
    endings: NDArray[np.int64]
    filled: NDArray[np.int64]
    binding: NDArray[np.int64]  # scratch, one number per atom


@njit(cache=True, nogil=True)
def find_slot(hash_keys: NDArray[np.uint64], hash_traces: NDArray[np.int32], key: np.uint64) -> np.uint64:
    """Slot of a key, or the empty slot where it belongs."""
    mask = np.uint64(hash_keys.shape[0] - 1)
    slot = (key >> HOME_BITS) & mask
    while hash_traces[slot] != NIL and hash_keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def remove_slot(hash_keys: NDArray[np.uint64], hash_traces: NDArray[np.int32], key: np.uint64) -> None:
    """Take a key out and close the gap (backward shift), so that no tombstones gather."""
    size = np.uint64(hash_keys.shape[0])
    mask = size - np.uint64(1)
    gap = find_slot(hash_keys, hash_traces, key)
    slot = gap
    while True:
        slot = (slot + np.uint64(1)) & mask
        if hash_traces[slot] == NIL:
            break
        home = (hash_keys[slot] >> HOME_BITS) & mask
        if ((slot + size - home) & mask) >= ((slot + size - gap) & mask):
            hash_keys[gap] = hash_keys[slot]
            hash_traces[gap] = hash_traces[slot]
            gap = slot
    hash_traces[gap] = NIL


@njit(cache=True, nogil=True)
def rebuild_index(
    hash_keys: NDArray[np.uint64],
    hash_traces: NDArray[np.int32],
    trace_key: NDArray[np.uint64],
    traces: NDArray[np.int32],
) -> None:
    """Fill an empty index with the given traces."""
    for trace in traces:
        slot = find_slot(hash_keys, hash_traces, trace_key[trace])
        hash_keys[slot] = trace_key[trace]
        hash_traces[slot] = trace


@njit(cache=True, nogil=True)
def open_trace(state: State, slot: np.uint64, key: np.uint64, monitor: Int) -> Int:
    """A new trace at an empty slot of the index; NIL when there is no room."""
    trace = np.int32(state.counters[TRACE_FREE])
    if trace == NIL:
        return trace
    state.counters[TRACE_FREE] = state.trace_next[trace]
    state.counters[TRACES] += 1
    state.hash_keys[slot] = key
    state.hash_traces[slot] = trace
    state.trace_key[trace] = key
    state.trace_monitor[trace] = monitor
    state.trace_time[trace] = EARLIEST
    state.heads[trace, :] = NIL
    state.ended[trace, :] = False
    return trace


@njit(cache=True, nogil=True)
def release(state: State, head: Int) -> None:
    """Drop one reference to a stack; nodes and instances that nothing else reaches are free again."""
    counters, references, waiting = state.counters, state.node_references, state.scratch
    references[head] -= 1
    top = 0
    if references[head] == 0:
        waiting[0] = head
        top = 1
    while top > 0:
        top -= 1
        node = waiting[top]
        for other in (state.node_before[node], state.node_below[node]):
            if other != NIL:
                references[other] -= 1
                if references[other] == 0:
                    waiting[top] = other
                    top += 1
        instance = state.node_instance[node]
        state.instance_references[instance] -= 1
        if state.instance_references[instance] == 0:
            state.instance_next[instance] = counters[INSTANCE_FREE]
            counters[INSTANCE_FREE] = instance
            counters[INSTANCES] -= 1
        state.node_below[node] = counters[NODE_FREE]
        counters[NODE_FREE] = node
        counters[NODES] -= 1


@njit(cache=True, nogil=True)
def close_trace(state: State, trace: Int) -> None:
    """Forget a trace and give back all it holds."""
    for index in range(state.heads.shape[1]):
        if state.heads[trace, index] != NIL:
            release(state, state.heads[trace, index])
    remove_slot(state.hash_keys, state.hash_traces, state.trace_key[trace])
    state.trace_next[trace] = state.counters[TRACE_FREE]
    state.counters[TRACE_FREE] = trace
    state.counters[TRACES] -= 1


@njit(cache=True, nogil=True)
def push(state: State, trace: Int, target: Int, before: Int, atom: Int, instance: Int) -> None:
    """Bind an instance: one node on the target's stack that stands for every combination below ``before``."""
    counters = state.counters
    node = np.int32(counters[NODE_FREE])
    counters[NODE_FREE] = state.node_below[node]
    counters[NODES] += 1
    counters[PEAK_NODES] = max(counters[PEAK_NODES], counters[NODES])
    below = state.heads[trace, target]
    ways = 1.0
    if before != NIL:
        state.node_references[before] += 1
        ways = state.node_ways[before]
    state.node_ways[node] = ways + (state.node_ways[below] if below != NIL else 0.0)
    state.node_below[node] = below
    state.node_before[node] = before
    state.node_atom[node] = atom
    state.node_instance[node] = instance
    state.node_references[node] = 1
    state.instance_references[instance] += 1
    state.heads[trace, target] = node


@njit(cache=True, nogil=True)
def take_instance(state: State, sequence: Int) -> Int:
    """A fresh instance without references."""
    counters = state.counters
    instance = np.int32(counters[INSTANCE_FREE])
    counters[INSTANCE_FREE] = state.instance_next[instance]
    counters[INSTANCES] += 1
    state.instance_sequence[instance] = sequence
    state.instance_references[instance] = 0
    return instance


@njit(cache=True, nogil=True)
def emit(
    program: Program, state: State, output: Output, transition: Int, head: Int, row: Int, sequence: Int, budget: Int
) -> Int:
    """Write the matches that an event completes, newest instances first, at most ``budget``; returns their number."""
    record = output.filled[0]
    matches = output.matches
    depth = program.depth[program.source[transition]]
    path = state.scratch
    binding = output.binding
    binding[:] = NIL
    binding[program.atom[transition]] = sequence
    path[0] = head
    level = 0
    written: Int = 0
    while level >= 0 and written < budget:
        if level == depth:
            matches[record, 0] = row
            matches[record, 1] = program.pattern[transition]
            matches[record, 2] = program.term[transition]
            matches[record, MATCH_HEADER:] = binding
            record += 1
            written += 1
            level -= 1
        elif path[level] != NIL:
            node = path[level]
            binding[state.node_atom[node]] = state.instance_sequence[state.node_instance[node]]
            level += 1
            path[level] = state.node_before[node]
            continue
        else:
            level -= 1
        if level >= 0:
            path[level] = state.node_below[path[level]]
    output.filled[0] = record
    return written


@njit(cache=True, nogil=True, inline="always")
def expected_matches(program: Program, state: State, columns: Columns, trace: Int, row: Int, limit: Int) -> float:
    """How many matches an event will write, with the limit per pattern applied."""
    patterns, sources, targets, depth = program.pattern, program.source, program.target, program.depth
    predicates, passed, heads, ways = program.predicate, columns.passed, state.heads, state.node_ways
    total, current, last = 0.0, 0.0, NIL
    event_type = columns.types[row]
    for transition in range(program.listen[event_type], program.listen[event_type + 1]):
        if targets[transition] != IS_ACCEPTING or not passed[predicates[transition], row]:
            continue
        if patterns[transition] != last:
            total += min(current, limit)
            current, last = 0.0, patterns[transition]
        source = sources[transition]
        if depth[source] == 0:
            current += 1.0
        elif heads[trace, source] != NIL:
            current += ways[heads[trace, source]]
    return total + min(current, limit)


@njit(cache=True, nogil=True, inline="always")
def bind(
    program: Program,
    guards: Guards,
    state: State,
    columns: Columns,
    output: Output,
    trace: Int,
    row: Int,
    monitor: Int,
    limit: Int,
) -> None:
    """Let an event take every transition that it can: matches go out, partial matches grow."""
    patterns, sources, targets, depth = program.pattern, program.source, program.target, program.depth
    predicates, passed, live = program.predicate, columns.passed, guards.live
    heads, ended, counters = state.heads, state.ended, state.counters
    event_type = columns.types[row]
    sequence = counters[EVENTS] + row
    last = NIL
    instance: Int = np.int32(NIL)
    written: Int = 0
    for transition in range(program.listen[event_type], program.listen[event_type + 1]):
        if not passed[predicates[transition], row] or ended[trace, patterns[transition]]:
            continue
        if patterns[transition] != last:
            last = patterns[transition]
            instance = np.int32(NIL)
            written = 0
        source, target = sources[transition], targets[transition]
        head = np.int32(NIL)
        if depth[source] > 0:
            head = heads[trace, source]
            if head == NIL:
                continue
        if target == IS_ACCEPTING:
            found = state.node_ways[head] if head != NIL else 1.0
            kept = emit(program, state, output, transition, head, row, sequence, limit - written)
            written += kept
            counters[MATCHES] += kept
            if found > kept:
                drop(state, output, row, patterns[transition], found - kept)
        elif live[monitor, target]:
            if instance == NIL:
                instance = take_instance(state, sequence)
            push(state, trace, target, head, program.atom[transition], instance)


@njit(cache=True, nogil=True)
def has_future(program: Program, guards: Guards, state: State, trace: Int, pattern: Int, monitor: Int) -> bool:
    """Whether some occupied state of the pattern can still complete."""
    for index in range(program.state_range[pattern], program.state_range[pattern + 1]):
        if guards.live[monitor, index] and (program.depth[index] == 0 or state.heads[trace, index] != NIL):
            return True
    return False


@njit(cache=True, nogil=True)
def kill(
    program: Program,
    guards: Guards,
    state: State,
    output: Output,
    trace: Int,
    row: Int,
    before: Int,
    after: Int,
    event_type: Int,
) -> None:
    """Release the states that live no longer; report every (trace, pattern) pair that has no future left."""
    kills = guards.kills[guards.kill_from[before, event_type] : guards.kill_to[before, event_type]]
    index = 0
    while index < kills.shape[0]:
        pattern = program.state_pattern[kills[index]]
        deepest = np.int32(NIL)
        while index < kills.shape[0] and program.state_pattern[kills[index]] == pattern:
            dead = kills[index]
            head = state.heads[trace, dead]
            if program.depth[dead] == 0 or head != NIL:
                if deepest == NIL or program.depth[dead] > program.depth[deepest]:
                    deepest = dead
                if head != NIL:
                    release(state, head)
                    state.heads[trace, dead] = NIL
            index += 1
        if deepest != NIL and not has_future(program, guards, state, trace, pattern, after):
            state.ended[trace, pattern] = True
            write_ending(output, row, pattern, np.int64(before), np.int64(after), deepest)
            state.counters[ENDINGS] += 1


@njit(cache=True, nogil=True)
def write_ending(output: Output, row: Int, pattern: Int, before: Int, after: Int, dead: Int) -> None:
    """One row of Output.endings: an ending, a deviation, or a number of dropped matches."""
    record = output.endings[output.filled[1]]
    record[0] = row
    record[1] = pattern
    record[2] = before
    record[3] = after
    record[4] = dead
    output.filled[1] += 1


@njit(cache=True, nogil=True)
def drop(state: State, output: Output, row: Int, pattern: Int, count: float) -> None:
    """Count matches beyond the limit; numbers past 2**53 are cut to it."""
    dropped = np.int64(min(count, MOST_COUNTED))
    state.counters[OVERFLOW] = min(state.counters[OVERFLOW] + dropped, MOST_COUNTED)
    write_ending(output, row, pattern, dropped, dropped, np.int32(DROPPED))


@njit(cache=True, nogil=True)
def deviate(state: State, output: Output, trace: Int, row: Int, before: Int) -> None:
    """The guard did not allow this event: say so, and re-open what had ended."""
    state.ended[trace, :] = False
    state.counters[DEVIATIONS] += 1
    nothing = np.int32(NIL)
    write_ending(output, row, nothing, np.int64(before), np.int64(DEVIANT), nothing)


@njit(cache=True, nogil=True, inline="always")
def lacking(program: Program, state: State, columns: Columns, output: Output, trace: Int, row: Int, limit: Int) -> Int:
    """What an event that some pattern listens to, or that moves a monitor, would find no room for; else DONE."""
    event_type = columns.types[row]
    pushes = program.listen[event_type + 1] - program.listen[event_type]
    if state.counters[NODES] + pushes > state.node_below.shape[0]:
        return NODES_FULL
    if output.filled[1] + state.ended.shape[1] + pushes + 1 > output.endings.shape[0]:
        return ENDINGS_FULL
    expected = expected_matches(program, state, columns, trace, row, limit)
    return MATCHES_FULL if output.filled[0] + expected > output.matches.shape[0] else DONE


@njit(cache=True, nogil=True)
def match_batch(
    program: Program, guards: Guards, state: State, columns: Columns, output: Output, first_row: Int, limit: Int
) -> tuple[Int, Int]:
    """Process rows from ``first_row`` on.

    Stops *before* an event that needs room or a guard's answer, so that the wrapper can supply it and call again.
    Arrays are taken out of their tuples once: reading one from a tuple costs a reference count each time.

    Returns:
        (status, row): ``DONE`` and the number of rows, or what is missing and the row to go on with.
    """
    types, keys, times = columns.types, columns.keys, columns.times
    hash_keys, hash_traces = state.hash_keys, state.hash_traces
    trace_time, trace_monitor, counters = state.trace_time, state.trace_monitor, state.counters
    next_monitor, is_fatal, start = guards.next, guards.is_fatal, guards.start[0]
    kill_from, kill_to = guards.kill_from, guards.kill_to
    is_notable, is_end = program.is_notable, program.is_end
    for row in range(first_row, types.shape[0]):
        event_type = types[row]
        slot = find_slot(hash_keys, hash_traces, keys[row])
        trace = hash_traces[slot]
        if trace == NIL:
            trace = open_trace(state, slot, keys[row], start)
            if trace == NIL:
                return TRACES_FULL, row
        before = trace_monitor[trace]
        after = next_monitor[before, event_type]
        if after == NIL:
            counters[STOP_MONITOR] = before
            return MISSING_GUARD, row
        if is_notable[event_type] or is_fatal[before, event_type]:
            status = lacking(program, state, columns, output, trace, row, limit)
            if status != DONE:
                return status, row
            if after == DEVIANT and before != DEVIANT:
                deviate(state, output, trace, row, before)
            bind(program, guards, state, columns, output, trace, row, after, limit)
            if kill_from[before, event_type] < kill_to[before, event_type]:
                kill(program, guards, state, output, trace, row, before, after, event_type)
            if is_end[event_type]:
                close_trace(state, trace)
            counters[PEAK_INSTANCES] = max(counters[PEAK_INSTANCES], counters[INSTANCES])
        trace_monitor[trace] = after
        counters[GUARD_STEPS] += after != before
        counters[OUT_OF_ORDER] += times[row] < trace_time[trace]
        trace_time[trace] = max(trace_time[trace], times[row])
    return DONE, types.shape[0]


@njit(cache=True, nogil=True)
def release_states(state: State, traces: NDArray[np.int32], first: Int, last: Int) -> None:
    """Release what the given traces hold in states ``first`` to ``last - 1``."""
    for trace in traces:
        for index in range(first, last):
            if state.heads[trace, index] != NIL:
                release(state, state.heads[trace, index])
                state.heads[trace, index] = NIL
