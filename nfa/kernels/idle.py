"""The idle kernel, which ends a trace when its idle timeout has passed since its newest event.

Each trace has an entry in a heap of due times. An event changes only the time of its trace, not the heap. When an entry
reaches the top of the heap too early, it is pushed again with the trace's current due time. So an event costs a
look-up, and a trace costs a heap operation once per timeout.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import HOME_BITS

Int: TypeAlias = int | np.int32 | np.int64

EMPTY = np.iinfo(np.int64).min  # in ``IdleState.last``: the slot is free

# Indices of IdleState.counters.
USED = 0  # number of traces
HEAPED = 1  # number of heap entries
N_COUNTERS = 2


class IdleState(NamedTuple):
    """The open traces as a hash table by key, and the heap of their due times."""

    keys: NDArray[np.uint64]  # (slots,); the number of slots is a power of two
    last: NDArray[np.int64]  # (slots,) time of the trace's newest event, us; EMPTY: the slot is free
    queued: NDArray[np.int64]  # (slots,) due time of the trace's entry in the heap
    heap_due: NDArray[np.int64]
    heap_key: NDArray[np.uint64]
    counters: NDArray[np.int64]


class IdleEnds(NamedTuple):
    """The traces that the idle timeout ends, in the order of their ends. This is the output of the kernel."""

    rows: NDArray[np.int64]  # row before which the trace ends
    keys: NDArray[np.uint64]
    times: NDArray[np.int64]
    filled: NDArray[np.int64]  # (1,)


@inlined
def find(s: IdleState, key: np.uint64) -> np.int64:
    """Return the slot of a key, or an empty slot at which to enter a new key."""
    mask = np.uint64(s.keys.shape[0] - 1)
    slot = (key >> HOME_BITS) & mask
    while s.last[slot] != EMPTY and s.keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@routine
def remove(s: IdleState, slot: Int) -> None:
    """Empty a slot of the hash table, and move later entries up to close the gap (backward shift deletion)."""
    size = np.int64(s.keys.shape[0])
    mask = size - 1
    gap = np.int64(slot)
    at = gap
    while True:
        at = (at + 1) & mask
        if s.last[at] == EMPTY:
            break
        home = np.int64((s.keys[at] >> HOME_BITS) & np.uint64(mask))
        if ((at + size - home) & mask) >= ((at + size - gap) & mask):
            s.keys[gap], s.last[gap], s.queued[gap] = s.keys[at], s.last[at], s.queued[at]
            gap = at
    s.last[gap] = EMPTY
    s.counters[USED] -= 1


@inlined
def is_sooner(s: IdleState, first: Int, second: Int) -> bool:
    """Return whether the heap entry ``first`` is due before the entry ``second``."""
    if s.heap_due[first] != s.heap_due[second]:
        return bool(s.heap_due[first] < s.heap_due[second])
    return bool(s.heap_key[first] < s.heap_key[second])


@inlined
def swap(s: IdleState, first: Int, second: Int) -> None:
    """Exchange two entries of the heap."""
    s.heap_due[first], s.heap_due[second] = s.heap_due[second], s.heap_due[first]
    s.heap_key[first], s.heap_key[second] = s.heap_key[second], s.heap_key[first]


@routine
def push(s: IdleState, due: Int, key: np.uint64) -> None:
    """Add a due time to the heap, which must have room."""
    at = s.counters[HEAPED]
    s.heap_due[at], s.heap_key[at] = due, key
    s.counters[HEAPED] += 1
    while at > 0 and is_sooner(s, at, (at - 1) // 2):
        swap(s, at, (at - 1) // 2)
        at = (at - 1) // 2


@routine
def pop(s: IdleState) -> None:
    """Remove the heap's entry that is due first."""
    s.counters[HEAPED] -= 1
    size = s.counters[HEAPED]
    s.heap_due[0], s.heap_key[0] = s.heap_due[size], s.heap_key[size]
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and is_sooner(s, child + 1, child):
            child += 1
        if not is_sooner(s, child, at):
            return
        swap(s, child, at)
        at = child


@routine
def end_due(s: IdleState, ends: IdleEnds, timeout: Int, now: Int, row: Int) -> bool:
    """End the traces whose due time is at most ``now``, just before the row ``row`` of the batch.

    Return false if ``ends`` becomes full before all of them have ended.
    """
    while s.counters[HEAPED] > 0 and s.heap_due[0] <= now:
        if ends.filled[0] == ends.rows.shape[0]:
            return False
        due, key = s.heap_due[0], s.heap_key[0]
        pop(s)
        slot = find(s, key)
        if s.last[slot] == EMPTY or s.queued[slot] != due:
            continue  # the trace has already ended for another reason
        current = s.last[slot] + timeout
        if current > due:
            s.queued[slot] = current
            push(s, current, key)
            continue
        place = ends.filled[0]
        ends.rows[place], ends.keys[place], ends.times[place] = row, key, current
        ends.filled[0] += 1
        remove(s, slot)
    return True


@kernel
def expire(s: IdleState, ends: IdleEnds, timeout: Int, now: Int, row: Int) -> bool:
    """End the traces whose due time is at most ``now``, just before the row ``row`` of the batch.

    Return false if ``ends`` is full before all of them have ended.
    """
    return end_due(borrowed(s), borrowed(ends), timeout, now, row)


@kernel
def advance(
    s: IdleState,
    ends: IdleEnds,
    keys: NDArray[np.uint64],
    times: NDArray[np.int64],
    is_last: NDArray[np.bool_],
    timeout: Int,
    newest: Int,
    first: Int,
) -> tuple[Int, Int]:
    """Process the rows of a batch from row ``first`` on: note their times, and end idle traces.

    For each row, there must be room for a new trace and a due time. Returns (row, newest event time). The row is the
    number of rows. If ``ends`` is full, it is the row at which to resume.
    """
    s, ends, keys, times, is_last = borrowed(s), borrowed(ends), borrowed(keys), borrowed(times), borrowed(is_last)
    for row in range(first, keys.shape[0]):
        newest = max(np.int64(newest), times[row])
        if not end_due(s, ends, timeout, newest, row):
            return np.int64(row), np.int64(newest)
        slot = find(s, keys[row])
        if is_last[row]:
            if s.last[slot] != EMPTY:
                remove(s, slot)
        elif s.last[slot] == EMPTY:
            s.keys[slot], s.last[slot], s.queued[slot] = keys[row], times[row], times[row] + timeout
            s.counters[USED] += 1
            push(s, times[row] + timeout, keys[row])
        else:
            s.last[slot] = max(s.last[slot], times[row])
    return np.int64(keys.shape[0]), np.int64(newest)


@kernel
def fill(s: IdleState, keys: NDArray[np.uint64], last: NDArray[np.int64], queued: NDArray[np.int64]) -> bool:
    """Add traces to the hash table, and return false if a key occurs twice. There must be enough empty slots."""
    s, keys, last, queued = borrowed(s), borrowed(keys), borrowed(last), borrowed(queued)
    for number in range(keys.shape[0]):
        slot = find(s, keys[number])
        if s.last[slot] != EMPTY:
            return False
        s.keys[slot], s.last[slot], s.queued[slot] = keys[number], last[number], queued[number]
        s.counters[USED] += 1
    return True


@kernel
def forget(s: IdleState, keys: NDArray[np.uint64]) -> None:
    """Remove the traces with the given keys. Keys without a trace are ignored."""
    s, keys = borrowed(s), borrowed(keys)
    for number in range(keys.shape[0]):
        slot = find(s, keys[number])
        if s.last[slot] != EMPTY:
            remove(s, slot)
