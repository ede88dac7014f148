"""Kernels that find groups, and that find the steps at which the conditions of groups change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels.tables import FLOAT, HIGHEST, INTEGER, IS_TRUE, LOWEST, MARK, VALUE, Events, Groups, Steps
from aggregates.kernels.values import clear_values
from aggregates.kernels.windows import note_step
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel

_HALF = np.uint64(32)


@kernel
def note_waiting(
    all_groups: Groups,
    ring: Events,
    steps: Steps,
    logs: NDArray[np.int64],
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    codes: NDArray[np.int32],
    at_us: int,
    modes: int,
) -> None:
    """Write the values of each group in ``codes`` into a new step at ``at_us``, for a run that was loaded.

    The step was unfinished when the run was saved, because events of the same time may change it.
    """
    groups, held, out = borrowed(all_groups), borrowed(ring), borrowed(steps)
    for place in range(codes.shape[0]):
        code = np.int64(codes[place])
        note_step(groups, held, plan, bounds, state, out, logs, code, np.int64(at_us), np.int64(-1), np.int64(modes))


@kernel
def forget_values(
    all_groups: Groups,
    plan: NDArray[np.int64],
    state: NDArray[np.int64],
    logs: NDArray[np.int64],
    codes: NDArray[np.int64],
) -> None:
    """Free the tree nodes in which the groups in ``codes`` hold values."""
    groups = borrowed(all_groups)
    for place in range(codes.shape[0]):
        clear_values(groups, plan, state, logs, codes[place])


@kernel
def note_within(
    kinds: NDArray[np.uint8], floats: NDArray[np.float64], bounds: NDArray[np.float64], holds: NDArray[np.bool_]
) -> None:
    """Write to ``holds``, for each step, whether all values with bounds are numbers within their bounds.

    A step is a change of a group, with the values after it.
    """
    for step in range(holds.shape[0]):
        holds[step] = True
        for row in range(bounds.shape[0]):
            value = np.int64(bounds[row, VALUE])
            is_number = kinds[value, step] == INTEGER or kinds[value, step] == FLOAT
            holds[step] &= is_number and bounds[row, LOWEST] <= floats[value, step] <= bounds[row, HIGHEST]


@kernel
def note_truths(
    codes: NDArray[np.int32],
    sizes: NDArray[np.int64],
    ended: NDArray[np.bool_],
    holds: NDArray[np.bool_],
    words: NDArray[np.int64],
    changes: NDArray[np.int64],
    is_cleared: bool,
) -> int:
    """Write to ``changes`` the steps at which the condition of their group becomes true, and return their number.

    A step is a change of a group. With ``is_cleared``, steps at which the condition becomes false are written, too.
    ``holds`` has the condition's truth at each step. The kernel sets it to false at a step whose window is empty or
    ends.
    """
    count = 0
    for step in range(codes.shape[0]):
        holds[step] = holds[step] and sizes[step] > 0 and not ended[step]
        if np.int64(holds[step]) != words[codes[step], MARK] & IS_TRUE:
            words[codes[step], MARK] ^= IS_TRUE
            changes[count] = step
            count += int(holds[step] or is_cleared)
    return count


@inlined
def home_of(hashed: np.uint64, places: int) -> np.int64:
    """Return the index at which the search for a hash begins in a hash table with ``places`` entries."""
    return np.int64(((hashed >> _HALF) * np.uint64(places)) >> _HALF)


@kernel
def find_codes(
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    known: NDArray[np.uint64],
    codes: NDArray[np.int32],
    fresh: NDArray[np.int64],
    begin: int,
    count: int,
    fresh_count: int,
) -> tuple[int, int]:
    """Find the codes of groups by their hashes, from row ``begin`` on. New groups get the next codes.

    ``known`` has the hashes of ``count`` codes. ``table`` is the hash table: it has more entries than ``known``, each a
    code or -1. ``fresh`` has ``fresh_count`` rows, and gets the row at which each new group first appears. Return the
    number of codes, and the row of the first group for which ``known`` has no room.
    """
    places = table.shape[0]
    for row in range(hashes.shape[0] if begin == 0 else 0):  # read ahead, so that the waits for memory overlap
        codes[row] = table[home_of(hashes[row], places)]
    for row in range(begin, hashes.shape[0]):
        if codes[row] >= 0 and known[codes[row]] == hashes[row]:
            continue
        place = home_of(hashes[row], places)
        while table[place] >= 0 and known[table[place]] != hashes[row]:
            place = place + 1 if place + 1 < places else np.int64(0)
        if table[place] < 0:
            if count == known.shape[0]:
                return count, row
            table[place] = count
            known[count] = hashes[row]
            fresh[fresh_count] = row
            count, fresh_count = count + 1, fresh_count + 1
        codes[row] = table[place]
    return count, hashes.shape[0]
