"""Kernels over the groups of an aggregate: finding them, and the changes of their conditions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels.tables import IS_TRUE, TRUTH, Events, Groups, Steps
from aggregates.kernels.values import clear_values
from aggregates.kernels.windows import note_step
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel


@kernel
def note_waiting(
    all_groups: Groups,
    ring: Events,
    found: Steps,
    logs: NDArray[np.int64],
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    codes: NDArray[np.int32],
    at_us: int,
    modes: int,
) -> None:
    """Note a step of each of some groups, which wait for further events of a time."""
    groups, held, out = borrowed(all_groups), borrowed(ring), borrowed(found)
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
    """Free the nodes of some groups."""
    groups = borrowed(all_groups)
    for place in range(codes.shape[0]):
        clear_values(groups, plan, state, logs, codes[place])


@kernel
def note_truths(
    codes: NDArray[np.int32],
    sizes: NDArray[np.int64],
    ended: NDArray[np.bool_],
    holds: NDArray[np.bool_],
    words: NDArray[np.int64],
    changes: NDArray[np.int64],
) -> int:
    """Note the steps at which the condition of a group becomes true or false.

    It is false for windows that are empty or end. Returns the number of ``changes``.
    """
    count = 0
    for step in range(codes.shape[0]):
        is_true = np.int64(holds[step] and sizes[step] > 0 and not ended[step])
        if is_true != words[codes[step], TRUTH] & IS_TRUE:
            words[codes[step], TRUTH] ^= IS_TRUE
            changes[count] = step
            count += 1
    return count


@kernel
def find_codes(
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    known: NDArray[np.uint64],
    codes: NDArray[np.int32],
    fresh: NDArray[np.int64],
    count: int,
) -> int:
    """Find the codes of groups by their hashes; the first event of each new group is noted in ``fresh``.

    ``table`` has a power of two of places, at least twice as many as there can be groups, each with a code or -1.
    ``known`` has the hashes of ``count`` codes, and room for a new one for each event. Returns the number of codes.
    """
    last = np.uint64(table.shape[0] - 1)
    before = count
    for row in range(hashes.shape[0]):  # all tables are read before the next, so that memory is waited for once
        codes[row] = table[hashes[row] & last]
    for row in range(hashes.shape[0]):
        if codes[row] >= 0 and known[codes[row]] == hashes[row]:
            continue
        place = hashes[row] & last
        while table[place] >= 0 and known[table[place]] != hashes[row]:
            place = (place + np.uint64(1)) & last
        if table[place] < 0:
            table[place] = count
            known[count] = hashes[row]
            fresh[count - before] = row
            count += 1
        codes[row] = table[place]
    return count
