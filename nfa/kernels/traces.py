"""The trace kernel: keys of a batch to trace numbers and monitor states, in one pass before any engine runs.

The index is open addressing with a key and its trace side by side, so that a look-up costs one cache line. Rows that
nobody wants are skipped without a look-up; of the others a block at a time is looked at in advance, so that the
misses of a large index overlap. Source of the monitor automaton: C-CEP (constraint-aware CEP, section 4.2).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int: TypeAlias = int | np.int32 | np.int64

NIL = -1
HOME_BITS = np.uint64(32)  # the low bits of a key's hash chose its shard, the high bits its place in the index
BLOCK = 64  # rows looked at in advance

# What the kernel returns: it is done, or stopped before a row for want of something the wrapper supplies.
DONE = 0
MISSING_GUARD = 1  # guards.next at (counters[STOP_MONITOR], type of the row) is not built yet
TRACES_FULL = 2

# Reserved monitor states: neither prunes, and only the first says that the trace broke a constraint.
DEVIANT = 0
UNGUARDED = 1

# Indices of TraceState.counters.
TRACES = 0  # open
FREE = 1  # numbers on the stack of free ones
FRESH = 2  # numbers that were ever given out
DEVIATIONS = 3
GUARD_STEPS = 4  # events that moved a monitor
OUT_OF_ORDER = 5  # events older than the newest before them
NEWEST = 6  # time, us
STOP_MONITOR = 7
SWEEP_AT = 8  # open traces above which forgetting idle ones pays
TOUCHED = 9  # what looking in advance read; kept so that the reads happen
N_COUNTERS = 10

TRUE = 0  # row of Columns.passed that every event passes

# Bits of Wants.of_type.
ALWAYS = 1  # every event of the type is looked up, and opens a trace where there is none
ASKS = 2  # those that pass one of the type's predicates
ENDS = 4  # the trace ends with it


class Wants(NamedTuple):
    """Which rows need their trace."""

    of_type: NDArray[np.uint8]  # (types,) bits
    ask_from: NDArray[np.int32]  # (types + 1,) ranges of predicates
    predicates: NDArray[np.int32]  # rows of Columns.passed
    opens: NDArray[np.bool_]  # beside predicates: an event that passes may open a trace


class Guards(NamedTuple):
    """What the guard said so far, as tables over monitor states."""

    next: NDArray[np.int32]  # (monitors, types); NIL: not asked yet
    live: NDArray[np.bool_]  # (monitors, states)
    kill_from: NDArray[np.int32]  # (monitors, types) ranges of kills
    kill_to: NDArray[np.int32]
    kills: NDArray[np.int32]  # states that live no longer, ascending
    start: NDArray[np.int32]  # (1,) monitor state of a new trace


class TraceState(NamedTuple):
    """Everything that lives from batch to batch."""

    slots: NDArray[np.uint64]  # (slots, 2): key, monitor << 32 | trace + 1; a power of two, 0 in the second: empty
    free: NDArray[np.int32]  # stack of free trace numbers
    counters: NDArray[np.int64]


class Columns(NamedTuple):
    """One batch."""

    types: NDArray[np.int32]
    keys: NDArray[np.uint64]
    times: NDArray[np.int64]
    passed: NDArray[np.bool_]  # (predicates, rows)


class VisitColumns(NamedTuple):
    """The rows that somebody wants, ascending; arrays as long as the batch."""

    rows: NDArray[np.int32]
    traces: NDArray[np.int32]
    before: NDArray[np.int32]  # monitor states
    after: NDArray[np.int32]
    ends: NDArray[np.bool_]
    filled: NDArray[np.int64]  # (1,)


@njit(cache=True, nogil=True, inline="always")
def find_slot(index: NDArray[np.uint64], key: np.uint64) -> np.uint64:
    """Slot of a key, or the empty slot where it belongs."""
    mask = np.uint64(index.shape[0] - 1)
    slot = (key >> HOME_BITS) & mask
    while index[slot, 1] != np.uint64(0) and index[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def remove_slot(index: NDArray[np.uint64], gap: np.uint64) -> None:
    """Empty a slot and close the gap (backward shift), so that no tombstones gather."""
    size = np.uint64(index.shape[0])
    mask = size - np.uint64(1)
    slot = gap
    while True:
        slot = (slot + np.uint64(1)) & mask
        if index[slot, 1] == np.uint64(0):
            break
        home = (index[slot, 0] >> HOME_BITS) & mask
        if ((slot + size - home) & mask) >= ((slot + size - gap) & mask):
            index[gap, 0] = index[slot, 0]
            index[gap, 1] = index[slot, 1]
            gap = slot
    index[gap, 1] = np.uint64(0)


@njit(cache=True, nogil=True)
def fill_index(index: NDArray[np.uint64], keys: NDArray[np.uint64], values: NDArray[np.uint64]) -> bool:
    """Enter keys into an index with room for them; False when a key comes twice or an entry is empty."""
    for number in range(keys.shape[0]):
        slot = find_slot(index, keys[number])
        if index[slot, 1] != np.uint64(0) or values[number] == np.uint64(0):
            return False
        index[slot, 0] = keys[number]
        index[slot, 1] = values[number]
    return True


@njit(cache=True, nogil=True)
def remove_keys(index: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
    """Take present keys out of an index."""
    for key in keys:
        remove_slot(index, find_slot(index, key))


@njit(cache=True, nogil=True, inline="always")
def wants_row(
    ask_from: NDArray[np.int32],
    predicates: NDArray[np.int32],
    opens: NDArray[np.bool_],
    passed: NDArray[np.bool_],
    event_type: Int,
    row: Int,
) -> tuple[bool, bool]:
    """Whether an event that is asked about passes some predicate, and whether it may open a trace."""
    is_wanted, is_opening = False, False
    for place in range(ask_from[event_type], ask_from[event_type + 1]):
        if passed[predicates[place], row]:
            is_wanted = True
            is_opening |= opens[place]
    return is_wanted, is_opening


@njit(cache=True, nogil=True, inline="always")
def pick_rows(
    of_type: NDArray[np.uint8], types: NDArray[np.int32], picked: NDArray[np.int32], first: Int, last: Int
) -> Int:
    """List the rows whose type somebody wants; returns their number."""
    count = 0
    for row in range(first, last):
        picked[count] = row
        count += of_type[types[row]] != 0
    return count


@njit(cache=True, nogil=True, inline="always")
def open_trace(
    slots: NDArray[np.uint64], free: NDArray[np.int32], counters: NDArray[np.int64], slot: np.uint64, key: np.uint64
) -> np.uint64:
    """Open a trace at an empty slot; returns its number plus one, or 0 where there is no room."""
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
    slots[slot, 0] = key
    return np.uint64(trace) + np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def count_late(times: NDArray[np.int64], counters: NDArray[np.int64]) -> None:
    """Count the events that are older than one before them."""
    newest, late = counters[NEWEST], np.int64(0)
    for row in range(times.shape[0]):
        late += times[row] < newest
        newest = max(newest, times[row])
    counters[NEWEST] = newest
    counters[OUT_OF_ORDER] += late


@njit(cache=True, nogil=True, inline="always")
def move(
    slots: NDArray[np.uint64], counters: NDArray[np.int64], slot: np.uint64, trace: np.uint64, before: Int, after: Int
) -> None:
    """Write a trace and its monitor state into its slot."""
    slots[slot, 1] = trace | (np.uint64(after) << HOME_BITS)
    if after != before:
        counters[GUARD_STEPS] += 1
        counters[DEVIATIONS] += after == DEVIANT


@njit(cache=True, nogil=True)
def advance_batch(
    wants: Wants, guards: Guards, state: TraceState, columns: Columns, visits: VisitColumns, first_row: Int
) -> tuple[Int, Int]:
    """Look up the wanted rows from ``first_row`` on, open and close traces, move their monitors.

    Returns:
        (status, row): ``DONE`` and the number of rows, or what is missing and the row to go on with.
    """
    types, keys, passed, counters = columns.types, columns.keys, columns.passed, state.counters
    slots, free, filled = state.slots, state.free, visits.filled
    of_type, ask_from, predicates, opens = wants.of_type, wants.ask_from, wants.predicates, wants.opens
    next_monitor, start = guards.next, guards.start[0]
    rows, traces, befores, afters, ends = visits.rows, visits.traces, visits.before, visits.after, visits.ends
    mask, low = np.uint64(slots.shape[0] - 1), np.uint64(0xFFFFFFFF)
    picked = np.empty(BLOCK, np.int32)
    n_rows, touched = types.shape[0], np.uint64(0)
    for block in range(first_row, n_rows, BLOCK):
        n_picked = pick_rows(of_type, types, picked, block, min(block + BLOCK, n_rows))
        for place in range(n_picked):
            touched ^= slots[(keys[picked[place]] >> HOME_BITS) & mask, 0]
        for place in range(n_picked):
            row = picked[place]
            event_type, key = types[row], keys[row]
            bits = of_type[event_type]
            is_wanted = is_opening = bits & ALWAYS != 0
            if bits & ASKS != 0 and not is_wanted:
                is_wanted, is_opening = wants_row(ask_from, predicates, opens, passed, event_type, row)
            if not is_wanted and bits & ENDS == 0:
                continue
            slot = find_slot(slots, key)
            value = slots[slot, 1]
            is_new = value == np.uint64(0)
            if is_new and not is_opening:
                continue
            before = np.int32(start) if is_new else np.int32(value >> HOME_BITS)
            after = next_monitor[before, event_type]
            if after == NIL:
                counters[STOP_MONITOR] = before
                return MISSING_GUARD, row
            trace = open_trace(slots, free, counters, slot, key) if is_new else value & low
            if trace == np.uint64(0):
                return TRACES_FULL, row
            move(slots, counters, slot, trace, before, after)
            visit = filled[0]
            rows[visit], traces[visit], befores[visit], afters[visit] = row, trace - np.uint64(1), before, after
            ends[visit] = bits & ENDS != 0
            filled[0] += 1
            if bits & ENDS != 0:
                remove_slot(slots, slot)
                counters[TRACES] -= 1
    count_late(columns.times, counters)
    counters[TOUCHED] = np.int64(touched & low)
    return DONE, n_rows
