"""Kernels for (trace, pattern) pairs outside of matching: they link, index and renumber pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.shared import pairs as shared_pairs
from nfa.kernels.shared.tables import INDEXED, NEXT, NIL, PATTERN, TRACE, Program, SharedState
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel


@kernel
def link_pairs(state: SharedState, pairs: NDArray[np.int32]) -> bool:
    """Add pairs with filled blocks to the lists of their traces. Return false if a pair occurs twice."""
    state, pairs = borrowed(state), borrowed(pairs)
    blocks = state.blocks
    for number in range(pairs.shape[0]):
        pair = np.int64(pairs[number])
        trace = blocks[pair + TRACE]
        if shared_pairs.find_pair(state, trace, blocks[pair + PATTERN]) != NIL:
            return False
        shared_pairs.link_pair(state, state, trace, pair)
    return True


@kernel
def fill_index(state: SharedState) -> None:
    """Add all pairs to an empty index, except the first pair of each trace."""
    state = borrowed(state)
    blocks, trace_first = state.blocks, state.trace_first
    state.counters[INDEXED] = 0
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            pair = np.int64(blocks[pair + NEXT])
            if pair != NIL:
                shared_pairs.enter_pair(state, pair)


@kernel
def keep_patterns(program: Program, state: SharedState, numbers: NDArray[np.int32]) -> None:
    """Change the number of each pair's pattern to ``numbers[old]``, and empty the index.

    Pairs of patterns whose new number is ``NIL`` are dropped.
    """
    program, state, numbers = borrowed(program), borrowed(state), borrowed(numbers)
    blocks, trace_first, slots, state_range = state.blocks, state.trace_first, state.slots, program.state_range
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            following = np.int64(blocks[pair + NEXT])
            pattern = blocks[pair + PATTERN]
            if numbers[pattern] == NIL:
                shared_pairs.close_stacks(state, pair, state_range[pattern + 1] - state_range[pattern])
            pair = following
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            blocks[pair + PATTERN] = numbers[blocks[pair + PATTERN]]
            pair = np.int64(blocks[pair + NEXT])
    for slot in range(slots.shape[0]):
        slots[slot] = np.uint64(0)
