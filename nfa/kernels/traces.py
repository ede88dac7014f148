"""The trace kernel: finds the trace number and monitor state of each key of a batch, before any engine runs.

The index uses open addressing, with a key and its trace side by side, so that a look-up costs one cache line. Rows that
no pattern or guard needs are skipped without a look-up. The other rows are prefetched a block at a time, so that the
cache misses of a large index overlap. Source of the monitor automaton: C-CEP (constraint-aware CEP, section 4.2).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import apart, inlined, kernel
from streams.kernels.slots import HOME_BITS, find_slot, remove_slot
from streams.kernels.slots import fill_slots as fill_slots  # noqa: PLC0414 - Python code of this package calls it

Int: TypeAlias = int | np.int32 | np.int64

NIL = -1
BLOCK = 64  # number of rows that are prefetched together

# Status of the kernel: done, or the reason for stopping before a row, which the wrapper must resolve.
DONE = 0
MISSING_GUARD = 1  # guards.next at (counters[STOP_MONITOR], counters[STOP_CLASS]) is not built yet
TRACES_FULL = 2
UNDER_BITS = 3  # the trace of the row is under bit tables. Higher numbers: status of ``bit_tables.advance_trace``

# Reserved monitor states, which last until the trace ends. Under the first two, nothing is pruned.
DEVIANT = 0  # the trace broke a constraint
UNGUARDED = 1
FAILED = 2  # the trace broke a constraint and was given up, so no more events are matched
RESERVED = 3  # the first number of other monitor states

# Rows of Guards.live that always exist: all alive, none alive.
ALL_LIVE, NONE_LIVE = 0, 1

# Guards.policy: how partial matches that can no longer complete are treated (``nfa.guards.protocol.Prune``).
EVICT, BY_QUERY, SHADOW = 0, 1, 2

NOTHING_ENDS = 0  # the empty list of Guards.kills
BITS = -3  # in Guards.next: the trace continues under bit tables
IGNORED = -2  # in Guards.kill_of: the event broke a constraint, which is only counted

# Indices of TraceState.counters.
TRACES = 0  # number of open traces
FREE = 1  # number of free trace numbers on the stack
FRESH = 2  # number of trace numbers ever assigned
DEVIATIONS = 3
GUARD_STEPS = 4  # number of events that changed a monitor state
OUT_OF_ORDER = 5  # number of events older than the newest event before them
NEWEST = 6  # newest time, us
STOP_MONITOR = 7
SWEEP_AT = 8  # number of open traces at which removing idle traces pays
TOUCHED = 9  # sum of prefetched values; stored so that the compiler keeps the reads
STOP_CLASS = 10
VIOLATIONS_IGNORED = 11
N_COUNTERS = 12

TRUE = 0  # row of Columns.passed that is true for every event

# Bits of Wants.of_type: the events of the type that are looked up.
ALWAYS = 1  # all events; an event also opens a missing trace
ASKS = 2  # events that satisfy one of the type's predicates
ENDS = 4  # all events, because they end the trace
FINDS = 8  # events in certain cells of the filter index


class Wants(NamedTuple):
    """The conditions under which a row's trace must be looked up, because a pattern or guard needs the row.

    The conditions are given by event type, predicate, and cell of the filter index.
    """

    of_type: NDArray[np.uint8]  # (types,) bits
    ask_from: NDArray[np.int32]  # (types + 1,) ranges of predicates
    predicates: NDArray[np.int32]  # rows of Columns.passed
    opens: NDArray[np.bool_]  # by predicate: whether an event that passes may open a trace
    cell_begin: NDArray[np.int32]  # by cell of the filter index: ranges of predicates, after those by type
    cell_end: NDArray[np.int32]


class Guards(NamedTuple):
    """The answers that guards have given so far, as tables over monitor states.

    ``live`` has a column for each state of each pattern, and then a column for each trailing NOT. The column of a NOT
    says whether the event of the NOT can still occur.
    """

    next: NDArray[np.int32]  # (monitors, classes); NIL: not yet built
    kill_of: NDArray[np.int32]  # (monitors, classes) number of a list of kills, or IGNORED
    gate: NDArray[np.int32]  # (monitors,) row of live: the states that may be entered
    truth: NDArray[np.int32]  # (monitors,) row of live: the states that can complete; fewer if dead states are kept
    policy: NDArray[np.uint8]  # (monitors,)
    live: NDArray[np.uint32]  # (rows, columns) terms of the pattern, as bits, that the state can still complete
    kill_from: NDArray[np.int32]  # (lists + 1,) ranges of kills
    kills: NDArray[np.int32]  # columns that are no longer live, ascending
    start: NDArray[np.int32]  # (1,) monitor state of a new trace


class TraceState(NamedTuple):
    """The state that the trace table keeps from batch to batch."""

    slots: NDArray[np.uint64]  # (slots, 2): key, monitor << 32 | trace + 1 (0: empty); a power of two rows
    free: NDArray[np.int32]  # stack of free trace numbers
    released: NDArray[np.int32]  # (traces,) number of bound events that engines dropped because of a guard
    newest: NDArray[np.int64]  # (traces,) newest time, us; empty unless ties are simultaneous
    counters: NDArray[np.int64]


class Columns(NamedTuple):
    """The columns of one batch."""

    types: NDArray[np.int32]
    classes: NDArray[np.int32]  # class numbers of events, by which guards distinguish them
    keys: NDArray[np.uint64]
    times: NDArray[np.int64]
    passed: NDArray[np.bool_]  # (predicates, rows)
    cells: NDArray[np.int32]  # (dimensions of the filter index, rows)


class VisitColumns(NamedTuple):
    """The visits of a batch: the rows that some pattern or guard needs, in order. Arrays have the batch's length."""

    rows: NDArray[np.int32]
    traces: NDArray[np.int32]
    before: NDArray[np.int32]  # monitor states
    after: NDArray[np.int32]
    kill: NDArray[np.int32]  # list of kills
    column: NDArray[np.int32]  # column of the event in Guards.next; empty unless ties are simultaneous
    ends: NDArray[np.bool_]
    filled: NDArray[np.int64]  # (1,)


class Advance(NamedTuple):
    """All arrays that ``advance_batch`` reads and writes."""

    wants: Wants
    guards: Guards
    state: TraceState
    columns: Columns
    visits: VisitColumns
    picked: NDArray[np.int32]  # (BLOCK,) scratch


@kernel
def remove_keys(index: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
    """Remove keys from an index. All of them must be in the index."""
    for key in keys:
        remove_slot(index, find_slot(index, key))


@inlined
def wants_row(
    ask_from: NDArray[np.int32],
    predicates: NDArray[np.int32],
    opens: NDArray[np.bool_],
    passed: NDArray[np.bool_],
    event_type: Int,
    row: Int,
) -> tuple[bool, bool]:
    """Return whether some step may accept an event, and whether such a step may open a trace for the event.

    Only the predicates of steps that listen to the event's type are tested.
    """
    is_wanted, is_opening = False, False
    for place in range(ask_from[event_type], ask_from[event_type + 1]):
        if passed[predicates[place], row]:
            is_wanted = True
            is_opening |= opens[place]
    return is_wanted, is_opening


@inlined
def finds_row(wants: Wants, columns: Columns, row: Int) -> tuple[bool, bool]:
    """Return the same as ``wants_row``, but for the steps that listen to an event's cells instead of its type."""
    is_wanted, is_opening = False, False
    for slot in range(columns.cells.shape[0]):
        cell = columns.cells[slot, row]
        for place in range(wants.cell_begin[cell], wants.cell_end[cell]):
            if columns.passed[wants.predicates[place], row]:
                is_wanted = True
                is_opening |= wants.opens[place]
                if is_opening:
                    break
    return is_wanted, is_opening


@inlined
def pick_rows(
    of_type: NDArray[np.uint8], types: NDArray[np.int32], picked: NDArray[np.int32], first: Int, last: Int
) -> Int:
    """Write to ``picked`` the rows whose type may need a look-up of the trace, and return their number."""
    count = 0
    for row in range(first, last):
        picked[count] = row
        count += of_type[types[row]] != 0
    return count


@inlined
def look_ahead(
    slots: NDArray[np.uint64], keys: NDArray[np.uint64], picked: NDArray[np.int32], n_picked: Int
) -> np.uint64:
    """Prefetch the index slots of the keys of the picked rows, so that cache misses overlap.

    Returns a mix of the values, so that the compiler keeps the reads.
    """
    mask, touched = np.uint64(slots.shape[0] - 1), np.uint64(0)
    for place in range(n_picked):
        touched ^= slots[(keys[picked[place]] >> HOME_BITS) & mask, 0]
    return touched


@inlined
def open_trace(
    slots: NDArray[np.uint64],
    free: NDArray[np.int32],
    released: NDArray[np.int32],
    counters: NDArray[np.int64],
    slot: np.uint64,
    key: np.uint64,
) -> np.uint64:
    """Open a trace at an empty slot of the index. Return its number plus one, or 0 if numbers are exhausted."""
    if counters[TRACES] >= slots.shape[0] - slots.shape[0] // 4:
        return np.uint64(0)
    if counters[FREE] > 0:
        counters[FREE] -= 1
        trace = np.int64(free[counters[FREE]])
    elif counters[FRESH] < free.shape[0]:
        trace = counters[FRESH]
        counters[FRESH] += 1
    else:
        return np.uint64(0)
    counters[TRACES] += 1
    released[trace] = 0
    slots[slot, 0] = key
    return np.uint64(trace) + np.uint64(1)


@inlined
def reach_trace(
    slots: NDArray[np.uint64],
    free: NDArray[np.int32],
    released: NDArray[np.int32],
    counters: NDArray[np.int64],
    slot: np.uint64,
    key: np.uint64,
    known: np.uint64,
) -> np.uint64:
    """Return the number plus one of the trace at a slot, or 0 if numbers are exhausted.

    ``known`` is the number plus one of an open trace. If ``known`` is 0, a trace is opened.
    """
    return known if known != np.uint64(0) else open_trace(slots, free, released, counters, slot, key)


@inlined
def monitor_of(value: np.uint64, start: np.int32) -> np.int32:
    """Return the monitor state in the value of an index slot. An empty slot gives ``start``."""
    return start if value == np.uint64(0) else np.int32(value >> HOME_BITS)


@inlined
def close_ended(slots: NDArray[np.uint64], counters: NDArray[np.int64], slot: np.uint64, is_over: np.bool_) -> None:
    """Remove a trace from the index if it has ended. Its number is released later."""
    if is_over:
        remove_slot(slots, slot)
        counters[TRACES] -= 1


@inlined
def count_late(times: NDArray[np.int64], counters: NDArray[np.int64]) -> None:
    """Count the events that are older than the newest event before them."""
    newest, late = counters[NEWEST], np.int64(0)
    for row in range(times.shape[0]):
        late += times[row] < newest
        newest = max(newest, times[row])
    counters[NEWEST] = newest
    counters[OUT_OF_ORDER] += late


@inlined
def class_of(
    classes: NDArray[np.int32], times: NDArray[np.int64], newest: NDArray[np.int64], trace: np.uint64, row: Int
) -> Int:
    """Return the column of an event in the guard's tables.

    If ties are simultaneous, each class has a second column, for events after the trace's newest time. ``trace`` is the
    trace's number plus one, or 0 if the trace is not open yet.
    """
    column = np.int64(classes[row])
    if newest.shape[0] != 0:
        column = 2 * column + (trace == np.uint64(0) or times[row] > newest[np.int64(trace) - 1])
    return column


@inlined
def note_time(
    newest: NDArray[np.int64], columns: NDArray[np.int32], visit: Int, trace: Int, column: Int, time: Int, is_new: bool
) -> None:
    """Store the newest time of a trace and the column of the event. This is done only if ties are simultaneous."""
    if newest.shape[0] != 0:
        columns[visit] = column
        newest[trace] = time if is_new else max(newest[trace], time)


@inlined
def move(
    slots: NDArray[np.uint64],
    counters: NDArray[np.int64],
    slot: np.uint64,
    trace: np.uint64,
    before: Int,
    after: Int,
    kill: Int,
) -> Int:
    """Write a trace and its new monitor state into the trace's slot.

    Return the index of the list of states and NOTs that the event kills.
    """
    slots[slot, 1] = trace | (np.uint64(after) << HOME_BITS)
    if after != before:
        counters[GUARD_STEPS] += 1
        counters[DEVIATIONS] += after in (DEVIANT, FAILED)
    if kill != IGNORED:
        return kill
    counters[VIOLATIONS_IGNORED] += 1
    return np.int32(NOTHING_ENDS)


@inlined
def write_visit(
    visits: VisitColumns, visit: Int, row: Int, trace: np.uint64, before: Int, after: Int, kill: Int, is_over: bool
) -> None:
    """Write the result of a row to ``visits``. ``trace`` is the trace's number plus one."""
    visits.rows[visit], visits.traces[visit] = row, np.int64(trace) - 1
    visits.before[visit], visits.after[visit], visits.kill[visit] = before, after, kill
    visits.ends[visit] = is_over
    visits.filled[0] = visit + 1


@apart
def advance_rows(arrays: Advance, first_row: Int) -> tuple[Int, Int]:
    """Process a batch as ``advance_batch`` does. The arrays must already be ``borrowed``."""
    wants, guards, state, columns, visits = arrays.wants, arrays.guards, arrays.state, arrays.columns, arrays.visits
    types, classes, keys, times, passed = columns.types, columns.classes, columns.keys, columns.times, columns.passed
    slots, free, released, newest = state.slots, state.free, state.released, state.newest
    counters, filled, columns_of = state.counters, visits.filled, visits.column
    of_type, ask_from, predicates, opens = wants.of_type, wants.ask_from, wants.predicates, wants.opens
    next_monitor, kill_of, start = guards.next, guards.kill_of, guards.start[0]
    low, picked = np.uint64(0xFFFFFFFF), arrays.picked
    n_rows, touched = types.shape[0], np.uint64(0)
    for block in range(first_row, n_rows, BLOCK):
        n_picked = pick_rows(of_type, types, picked, block, min(block + BLOCK, n_rows))
        touched ^= look_ahead(slots, keys, picked, n_picked)
        for place in range(n_picked):
            row = picked[place]
            event_type, key = types[row], keys[row]
            bits = of_type[event_type]
            is_wanted = is_opening = bits & ALWAYS != 0
            if bits & ASKS != 0 and not is_wanted:
                is_wanted, is_opening = wants_row(ask_from, predicates, opens, passed, event_type, row)
            if bits & FINDS != 0 and not is_opening:
                is_found, is_first = finds_row(wants, columns, row)
                is_wanted, is_opening = is_wanted or is_found, is_first
            if not is_wanted and bits & ENDS == 0:
                continue
            slot = find_slot(slots, key)
            value = slots[slot, 1]
            is_new = value == np.uint64(0)
            if is_new and not is_opening:
                continue
            before = monitor_of(value, start)
            event_class = class_of(classes, times, newest, value & low, row)
            after = next_monitor[before, event_class]
            if after < 0:
                counters[STOP_MONITOR], counters[STOP_CLASS] = before, event_class
                return MISSING_GUARD if after == NIL else UNDER_BITS, row
            trace = reach_trace(slots, free, released, counters, slot, key, value & low)
            if trace == np.uint64(0):
                return TRACES_FULL, row
            visit, is_over = filled[0], bits & ENDS != 0
            kill = move(slots, counters, slot, trace, before, after, kill_of[before, event_class])
            write_visit(visits, visit, row, trace, before, after, kill, is_over)
            note_time(newest, columns_of, visit, np.int64(trace) - 1, event_class, times[row], is_new)
            close_ended(slots, counters, slot, is_over)
    count_late(columns.times, counters)
    counters[TOUCHED] = np.int64(touched & low)
    return DONE, n_rows


@kernel
def advance_batch(arrays: Advance, first_row: Int) -> tuple[Int, Int]:
    """Look up the traces of the rows of a batch from ``first_row`` on.

    Open and close traces, and advance their monitors. Returns (status, row): ``DONE`` and the number of rows, or the
    reason for stopping and the row at which to resume.
    """
    return advance_rows(borrowed(arrays), first_row)
