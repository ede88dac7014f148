"""Pairs of a trace and a pattern: their blocks, the index over them, and giving back what they hold."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nfa.kernels.shared_tables import (
    BEFORE,
    BELOW,
    BLOCK_TOP,
    EVENT,
    HEADER,
    HELD,
    INDEXED,
    LOW,
    MATCHED,
    MEASURE,
    NEXT,
    NIL,
    NODES,
    OCCUPIED,
    PAIRS,
    PATTERN,
    PREVIOUS,
    REFERENCES,
    SIBLING,
    SPREAD,
    SWEEP_AT,
    SWEEPS,
    TRACE,
    UNIT,
    USED_WORDS,
    Int,
    Program,
    SharedState,
)
from streams.kernels.borrowing import borrowed


@njit(cache=True, nogil=True, inline="always")
def hash_of(trace: Int, pattern: Int) -> np.uint64:
    """Where a pair belongs in the index; the high bits are its tag."""
    mixed = (np.uint64(trace) * SPREAD) ^ ((np.uint64(pattern) * SPREAD) << np.uint64(20))  # no product wraps
    return mixed ^ (mixed >> np.uint64(29))


@njit(cache=True, nogil=True)
def find_pair_slot(index: NDArray[np.uint64], blocks: NDArray[np.int32], trace: Int, pattern: Int) -> np.uint64:
    """Slot of a pair, or the empty slot where it belongs."""
    index, blocks = borrowed(index), borrowed(blocks)
    mask = np.uint64(index.shape[0] - 1)
    mixed = hash_of(trace, pattern)
    tag = mixed >> np.uint64(32)
    slot = mixed & mask
    while index[slot] != np.uint64(0):
        if index[slot] >> np.uint64(32) == tag:
            pair = np.int64(index[slot] & LOW) - 1
            if blocks[pair + TRACE] == trace and blocks[pair + PATTERN] == pattern:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def enter_pair(index: NDArray[np.uint64], blocks: NDArray[np.int32], counters: NDArray[np.int64], pair: Int) -> None:
    """Enter a pair that is not the first of its trace."""
    index, blocks, counters = borrowed(index), borrowed(blocks), borrowed(counters)
    trace, pattern = blocks[pair + TRACE], blocks[pair + PATTERN]
    slot = find_pair_slot(index, blocks, trace, pattern)
    index[slot] = (hash_of(trace, pattern) & ~LOW) | np.uint64(pair + 1)
    counters[INDEXED] += 1


@njit(cache=True, nogil=True)
def leave_pair(index: NDArray[np.uint64], blocks: NDArray[np.int32], counters: NDArray[np.int64], pair: Int) -> None:
    """Take a pair out of the index and close the gap (backward shift)."""
    index, blocks, counters = borrowed(index), borrowed(blocks), borrowed(counters)
    size = np.uint64(index.shape[0])
    mask = size - np.uint64(1)
    gap = find_pair_slot(index, blocks, blocks[pair + TRACE], blocks[pair + PATTERN])
    slot = gap
    while True:
        slot = (slot + np.uint64(1)) & mask
        if index[slot] == np.uint64(0):
            break
        other = np.int64(index[slot] & LOW) - 1
        home = hash_of(blocks[other + TRACE], blocks[other + PATTERN]) & mask
        if ((slot + size - home) & mask) >= ((slot + size - gap) & mask):
            index[gap] = index[slot]
            gap = slot
    index[gap] = np.uint64(0)
    counters[INDEXED] -= 1


@njit(cache=True, nogil=True, inline="always")
def find_pair(
    trace_first: NDArray[np.int32], blocks: NDArray[np.int32], index: NDArray[np.uint64], trace: Int, pattern: Int
) -> np.int64:
    """What a trace holds of a pattern; NIL when that is nothing."""
    pair = np.int64(trace_first[trace])
    if pair != NIL and blocks[pair + PATTERN] != pattern:
        if blocks[pair + NEXT] == NIL:
            pair = np.int64(NIL)
        else:
            slot = find_pair_slot(index, blocks, trace, pattern)
            pair = np.int64(index[slot] & LOW) - 1
    return pair


@njit(cache=True, nogil=True, inline="always")
def open_pair(
    trace_first: NDArray[np.int32],
    blocks: NDArray[np.int32],
    block_free: NDArray[np.int32],
    index: NDArray[np.uint64],
    counters: NDArray[np.int64],
    trace: Int,
    pattern: Int,
    states: Int,
) -> np.int64:
    """An empty pair; there is room for it."""
    units = (HEADER + states - 1 + UNIT - 1) // UNIT
    pair = np.int64(block_free[units])
    if pair != NIL:
        block_free[units] = blocks[pair]
    else:
        pair = counters[BLOCK_TOP]
        counters[BLOCK_TOP] += units * UNIT
    counters[USED_WORDS] += units * UNIT
    counters[PAIRS] += 1
    blocks[pair : pair + units * UNIT] = NIL
    blocks[pair + TRACE] = trace
    blocks[pair + PATTERN] = pattern
    blocks[pair + OCCUPIED] = 0
    blocks[pair + MATCHED] = 0
    first = trace_first[trace]
    if first == NIL:
        trace_first[trace] = pair
    else:
        second = blocks[first + NEXT]
        blocks[pair + PREVIOUS] = first
        blocks[pair + NEXT] = second
        blocks[first + NEXT] = pair
        if second != NIL:
            blocks[second + PREVIOUS] = pair
        enter_pair(index, blocks, counters, pair)
    return pair


@njit(cache=True, nogil=True)
def close_pair(
    trace_first: NDArray[np.int32],
    blocks: NDArray[np.int32],
    block_free: NDArray[np.int32],
    index: NDArray[np.uint64],
    counters: NDArray[np.int64],
    pair: Int,
    states: Int,
) -> None:
    """Forget a pair whose stacks are empty."""
    trace_first, blocks, block_free = borrowed(trace_first), borrowed(blocks), borrowed(block_free)
    index, counters = borrowed(index), borrowed(counters)
    following, previous = np.int64(blocks[pair + NEXT]), blocks[pair + PREVIOUS]
    if previous == NIL:
        trace_first[blocks[pair + TRACE]] = following
        if following != NIL:
            leave_pair(index, blocks, counters, following)
    else:
        leave_pair(index, blocks, counters, pair)
        blocks[previous + NEXT] = following
    if following != NIL:
        blocks[following + PREVIOUS] = previous
    units = (HEADER + states - 1 + UNIT - 1) // UNIT
    blocks[pair] = block_free[units]
    block_free[units] = pair
    counters[USED_WORDS] -= units * UNIT
    counters[PAIRS] -= 1


@njit(cache=True, nogil=True)
def release(links: NDArray[np.int32], free: NDArray[np.int32], counters: NDArray[np.int64], head: Int) -> None:
    """Drop one reference to a stack; nodes that nothing else reaches are free again."""
    links, free, counters = borrowed(links), borrowed(free), borrowed(counters)
    links[head, REFERENCES] -= 1
    if links[head, REFERENCES] != 0:
        return
    waiting = np.int32(head)
    links[waiting, REFERENCES] = NIL  # while a node waits, the next one that waits
    while waiting != NIL:
        node = waiting
        waiting = links[node, REFERENCES]
        for other in (links[node, BEFORE], links[node, BELOW]):
            if other != NIL:
                links[other, REFERENCES] -= 1
                if links[other, REFERENCES] == 0:
                    links[other, REFERENCES] = waiting
                    waiting = other
        sibling = links[node, SIBLING]
        if sibling == node:
            counters[HELD] -= 1
        else:
            last = sibling
            while links[last, SIBLING] != node:
                last = links[last, SIBLING]
            links[last, SIBLING] = sibling
        links[node, REFERENCES] = 0
        counters[NODES] -= 1
        free[counters[NODES]] = node


@njit(cache=True, nogil=True)
def trim_pair(state: SharedState, pair: Int, states: Int, now: Int) -> None:
    """Empty the stacks of a timed pair that have expired."""
    state = borrowed(state)
    blocks, links, nodes, counters = state.blocks, state.links, state.nodes, state.counters
    for place in range(pair + HEADER, pair + HEADER + states - 1):
        head = blocks[place]
        if head != NIL and nodes[head, MEASURE] <= now:
            release(links, state.free, counters, head)
            blocks[place] = NIL
            blocks[pair + OCCUPIED] -= 1


@njit(cache=True, nogil=True)
def sweep(program: Program, state: SharedState, now: Int) -> None:
    """Give back what has expired: tops of stacks, then everything below the last node that has not."""
    program, state = borrowed(program), borrowed(state)
    blocks, links, nodes, counters, trace_first = (
        state.blocks,
        state.links,
        state.nodes,
        state.counters,
        state.trace_first,
    )
    within, state_range = program.within, program.state_range
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            following = np.int64(blocks[pair + NEXT])
            pattern = blocks[pair + PATTERN]
            if within[pattern] != 0:
                states = state_range[pattern + 1] - state_range[pattern]
                trim_pair(state, pair, states, now)
                if blocks[pair + OCCUPIED] == 0:
                    close_pair(trace_first, blocks, state.block_free, state.slots, counters, pair, states)
            pair = following
    for node in range(nodes.shape[0]):
        below = links[node, BELOW]
        if links[node, REFERENCES] != 0 and below != NIL and nodes[node, EVENT] & 1 and nodes[below, MEASURE] <= now:
            links[node, BELOW] = NIL
            release(links, state.free, counters, below)
    counters[SWEEPS] += 1
    counters[SWEEP_AT] = max(1_024, 2 * counters[NODES])


@njit(cache=True, nogil=True)
def close_trace(program: Program, state: SharedState, trace: Int) -> None:
    """Give back all that a trace holds."""
    program, state = borrowed(program), borrowed(state)
    blocks, state_range = state.blocks, program.state_range
    pair = np.int64(state.trace_first[trace])
    while pair != NIL:
        following = np.int64(blocks[pair + NEXT])
        pattern = blocks[pair + PATTERN]
        close_stacks(state, pair, state_range[pattern + 1] - state_range[pattern])
        pair = following


@njit(cache=True, nogil=True)
def close_stacks(state: SharedState, pair: Int, states: Int) -> None:
    """Empty a pair and forget it."""
    state = borrowed(state)
    blocks, links, counters = state.blocks, state.links, state.counters
    for place in range(pair + HEADER, pair + HEADER + states - 1):
        if blocks[place] != NIL:
            release(links, state.free, counters, blocks[place])
    close_pair(state.trace_first, blocks, state.block_free, state.slots, counters, pair, states)


@njit(cache=True, nogil=True)
def link_pairs(state: SharedState, pairs: NDArray[np.int32]) -> bool:
    """Enter pairs whose blocks are filled into the lists of their traces; False when one stands twice."""
    blocks, trace_first, index, counters = state.blocks, state.trace_first, state.slots, state.counters
    for number in range(pairs.shape[0]):
        pair = np.int64(pairs[number])
        trace = blocks[pair + TRACE]
        if find_pair(trace_first, blocks, index, trace, blocks[pair + PATTERN]) != NIL:
            return False
        first = trace_first[trace]
        blocks[pair + NEXT], blocks[pair + PREVIOUS] = NIL, first
        if first == NIL:
            trace_first[trace] = pair
            continue
        second = blocks[first + NEXT]
        blocks[pair + NEXT] = second
        blocks[first + NEXT] = pair
        if second != NIL:
            blocks[second + PREVIOUS] = pair
        enter_pair(index, blocks, counters, pair)
    return True


@njit(cache=True, nogil=True)
def fill_index(state: SharedState) -> None:
    """Enter all pairs but the first of each trace into an empty index."""
    blocks, trace_first, index, counters = state.blocks, state.trace_first, state.slots, state.counters
    counters[INDEXED] = 0
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            pair = np.int64(blocks[pair + NEXT])
            if pair != NIL:
                enter_pair(index, blocks, counters, pair)


@njit(cache=True, nogil=True)
def keep_patterns(program: Program, state: SharedState, numbers: NDArray[np.int32]) -> None:
    """Give patterns the numbers ``numbers[old]``, and up what is held of those that go (``NIL``); empties the index."""
    blocks, trace_first, state_range = state.blocks, state.trace_first, program.state_range
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            following = np.int64(blocks[pair + NEXT])
            pattern = blocks[pair + PATTERN]
            if numbers[pattern] == NIL:
                close_stacks(state, pair, state_range[pattern + 1] - state_range[pattern])
            pair = following
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            blocks[pair + PATTERN] = numbers[blocks[pair + PATTERN]]
            pair = np.int64(blocks[pair + NEXT])
    state.slots[:] = 0
