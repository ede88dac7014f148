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
    """Assign a free slot to a trace that has none, and return the slot. If all slots are in use, return NIL.

    The caller must write the slot's state.
    """
    return bit_tables.take_slot(borrowed(traces), trace, guard)


@kernel
def release_slot(traces: BitTraces, trace: Int) -> None:
    """Release the slot of a trace. A trace without a slot is ignored."""
    bit_tables.release_slot(borrowed(traces), trace)


@kernel
def enter(program: BitProgram, guard: Int, seen: Words, state: NDArray[np.uint64]) -> None:
    """Write to ``state`` the state of a trace in which exactly the names ``seen`` have occurred."""
    bit_tables.enter(borrowed(program), guard, borrowed(seen), borrowed(state))


@kernel
def fill_live(program: BitProgram, guard: Int, state: NDArray[np.uint64], row: NDArray[np.uint32]) -> None:
    """Write to ``row`` the terms that can still complete in ``state``, as bits for each column."""
    bit_tables.fill_live(borrowed(program), guard, borrowed(state), borrowed(row))


@kernel
def index_row(index: NDArray[np.int32], live: NDArray[np.uint32], number: Int) -> None:
    """Add row ``number`` of ``live`` to the index. The row must be new."""
    bit_tables.index_row(borrowed(index), borrowed(live), number)


@kernel
def index_pair(index: NDArray[np.int32], before: Int, after: Int, value: Int) -> None:
    """Assign a value to a pair of monitor numbers. The pair must not be in ``index`` yet."""
    bit_tables.index_pair(borrowed(index), before, after, value)
