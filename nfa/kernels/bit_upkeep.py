"""Kernels through which Python calls the compiled routines of ``bit_tables``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels import bit_tables
from nfa.kernels.bit_tables import BitProgram, BitTraces, Int, Words
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel


@kernel
def take_slot(traces: BitTraces, trace: Int, guard: Int) -> Int:
    """Assign a slot to a trace without a slot and return the slot, or NIL if all slots are in use.

    The caller must write the slot's state.
    """
    return bit_tables.take_slot(borrowed(traces), trace, guard)


@kernel
def release_slot(traces: BitTraces, trace: Int) -> None:
    """Release the slot of a trace, if the trace has a slot."""
    bit_tables.release_slot(borrowed(traces), trace)


@kernel
def enter(program: BitProgram, guard: Int, seen: Words, state: NDArray[np.uint64]) -> None:
    """Write the state of a trace in which the names ``seen`` have occurred."""
    bit_tables.enter(borrowed(program), guard, borrowed(seen), borrowed(state))


@kernel
def fill_live(program: BitProgram, guard: Int, state: NDArray[np.uint64], row: NDArray[np.uint32]) -> None:
    """Write a row of liveness: for each column, as bits, the terms that can still complete in this state."""
    bit_tables.fill_live(borrowed(program), guard, borrowed(state), borrowed(row))


@kernel
def index_row(index: NDArray[np.int32], live: NDArray[np.uint32], number: Int) -> None:
    """Add row ``number`` of ``live``, which must be new, to the index."""
    bit_tables.index_row(borrowed(index), borrowed(live), number)


@kernel
def index_pair(index: NDArray[np.int32], before: Int, after: Int, value: Int) -> None:
    """Assign a value to a pair of monitor numbers that is not yet in ``index``."""
    bit_tables.index_pair(borrowed(index), before, after, value)
