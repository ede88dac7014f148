"""The trace kernel for batches with traces under bit tables. It is compiled only when such a trace occurs."""

from __future__ import annotations

import numpy as np

from nfa.kernels.bit_tables import Fallback, advance_trace
from nfa.kernels.traces import (
    DONE,
    ENDS,
    TRACES_FULL,
    UNDER_BITS,
    Advance,
    Int,
    advance_rows,
    close_ended,
    monitor_of,
    move,
    reach_trace,
    write_visit,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel, routine
from streams.kernels.slots import HOME_BITS, find_slot


@routine
def advance_under_bits(arrays: Advance, fallback: Fallback, row: Int) -> Int:
    """Advance the monitor of a row's trace, which is under bit tables. Return the status of ``advance_trace``."""
    wants, guards, state, columns, visits = arrays.wants, arrays.guards, arrays.state, arrays.columns, arrays.visits
    slots, key, visit = state.slots, columns.keys[row], visits.filled[0]
    slot = find_slot(slots, key)
    value = slots[slot, 1]
    before = monitor_of(value, guards.start[0])
    trace = reach_trace(slots, state.free, state.released, state.counters, slot, key, value & np.uint64(0xFFFFFFFF))
    if trace == np.uint64(0):
        return TRACES_FULL
    slots[slot, 1] = trace | (np.uint64(before) << HOME_BITS)  # the trace is open, even if the call must be repeated
    status, after, kill = advance_trace(
        fallback,
        guards.live,
        np.int64(trace) - 1,
        np.int64(before),
        np.int64(columns.classes[row]),
        np.int64(visit),
    )
    if status == DONE:
        is_over = wants.of_type[columns.types[row]] & ENDS != 0
        moved = np.int32(after)
        ended = move(slots, state.counters, slot, trace, before, moved, np.int32(kill))
        write_visit(visits, visit, np.int32(row), trace, before, moved, ended, is_over)
        close_ended(slots, state.counters, slot, is_over)
    return status


@kernel
def advance_mixed(arrays: Advance, fallback: Fallback, first_row: Int) -> tuple[Int, Int]:
    """Process a batch as ``traces.advance_batch`` does, including traces under bit tables."""
    arrays, fallback = borrowed(arrays), borrowed(fallback)
    row: Int = first_row
    while True:
        status, row = advance_rows(arrays, row)
        if status == UNDER_BITS:
            status = advance_under_bits(arrays, fallback, row)
            if status == DONE:
                row += 1
                continue
        return status, row
