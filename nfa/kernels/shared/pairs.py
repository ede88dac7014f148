"""The pairs, that is, (trace, pattern) entries: their blocks, their index, and the release of their nodes."""

from __future__ import annotations

import numpy as np

from nfa.kernels.shared.tables import (
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
from streams.kernels.compiling import apart, inlined


@inlined
def hash_of(trace: Int, pattern: Int) -> np.uint64:
    """Return the hash of a (trace, pattern) pair: the home slot in the low bits, the tag in the high 32 bits."""
    mixed = (np.uint64(trace) * SPREAD) ^ ((np.uint64(pattern) * SPREAD) << np.uint64(20))  # products do not overflow
    return mixed ^ (mixed >> np.uint64(29))


@inlined
def find_pair_slot(state: SharedState, trace: Int, pattern: Int) -> np.uint64:
    """Return the index slot of a (trace, pattern) pair, or an empty slot for a new pair."""
    index, blocks = state.slots, state.blocks
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


@apart
def enter_pair(state: SharedState, pair: Int) -> None:
    """Add a pair to the index. The first pair of a trace needs no entry, because ``trace_first`` leads to it."""
    trace, pattern = state.blocks[pair + TRACE], state.blocks[pair + PATTERN]
    slot = find_pair_slot(state, trace, pattern)
    state.slots[slot] = (hash_of(trace, pattern) & ~LOW) | np.uint64(pair + 1)
    state.counters[INDEXED] += 1


@apart
def leave_pair(state: SharedState, pair: Int) -> None:
    """Remove a pair from the index, and move later entries up to close the gap (backward shift deletion)."""
    index, blocks = state.slots, state.blocks
    size = np.uint64(index.shape[0])
    mask = size - np.uint64(1)
    gap = find_pair_slot(state, blocks[pair + TRACE], blocks[pair + PATTERN])
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
    state.counters[INDEXED] -= 1


@inlined
def find_pair(state: SharedState, trace: Int, pattern: Int) -> np.int64:
    """Return the pair of a trace and a pattern, or NIL if the trace has no data for the pattern."""
    blocks, pair = state.blocks, np.int64(state.trace_first[trace])
    if pair != NIL and blocks[pair + PATTERN] != pattern:
        if blocks[pair + NEXT] == NIL:
            pair = np.int64(NIL)
        else:
            slot = find_pair_slot(state, trace, pattern)
            pair = np.int64(state.slots[slot] & LOW) - 1
    return pair


@inlined
def link_pair(state: SharedState, lent: SharedState, trace: Int, pair: Int) -> None:
    """Add a pair with a filled block to its trace's list, and to the index unless it is the trace's first pair."""
    blocks, first = state.blocks, state.trace_first[trace]
    if first == NIL:
        blocks[pair + NEXT] = blocks[pair + PREVIOUS] = NIL
        state.trace_first[trace] = pair
        return
    second = blocks[first + NEXT]
    blocks[pair + PREVIOUS], blocks[pair + NEXT] = first, second
    blocks[first + NEXT] = pair
    if second != NIL:
        blocks[second + PREVIOUS] = pair
    enter_pair(lent, pair)


@inlined
def open_pair(state: SharedState, lent: SharedState, trace: Int, pattern: Int, states: Int) -> np.int64:
    """Create an empty pair and return it. There must be room."""
    blocks, block_free, counters = state.blocks, state.block_free, state.counters
    units = (HEADER + states - 1 + UNIT - 1) // UNIT
    pair = np.int64(block_free[units])
    if pair != NIL:
        block_free[units] = blocks[pair]
    else:
        pair = counters[BLOCK_TOP]
        counters[BLOCK_TOP] += units * UNIT
    counters[USED_WORDS] += units * UNIT
    counters[PAIRS] += 1
    blocks[pair + TRACE], blocks[pair + PATTERN] = trace, pattern
    blocks[pair + OCCUPIED] = blocks[pair + MATCHED] = 0
    for place in range(pair + HEADER, pair + units * UNIT):
        blocks[place] = NIL
    link_pair(state, lent, trace, pair)
    return pair


@apart
def close_pair(state: SharedState, pair: Int, states: Int) -> None:
    """Remove a pair from its trace's list and from the index, and release its block. Its stacks must be empty."""
    trace_first, blocks, block_free, counters = state.trace_first, state.blocks, state.block_free, state.counters
    following, previous = np.int64(blocks[pair + NEXT]), blocks[pair + PREVIOUS]
    if previous == NIL:
        trace_first[blocks[pair + TRACE]] = following
        if following != NIL:
            leave_pair(state, following)
    else:
        leave_pair(state, pair)
        blocks[previous + NEXT] = following
    if following != NIL:
        blocks[following + PREVIOUS] = previous
    units = (HEADER + states - 1 + UNIT - 1) // UNIT
    blocks[pair] = block_free[units]
    block_free[units] = pair
    counters[USED_WORDS] -= units * UNIT
    counters[PAIRS] -= 1


@apart
def release(state: SharedState, head: Int) -> None:
    """Drop one reference to a stack. Nodes without any other reference are released."""
    links, free, counters = state.links, state.free, state.counters
    links[head, REFERENCES] -= 1
    if links[head, REFERENCES] != 0:
        return
    waiting = np.int32(head)
    links[waiting, REFERENCES] = NIL  # while a node waits for its release, this links to the next waiting node
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


@apart
def trim_pair(state: SharedState, pair: Int, states: Int, now: Int) -> None:
    """Release those stacks of a pair whose partial matches have all expired. The pattern must have a window."""
    blocks, nodes = state.blocks, state.nodes
    for place in range(pair + HEADER, pair + HEADER + states - 1):
        head = blocks[place]
        if head != NIL and nodes[head, MEASURE] <= now:
            release(state, head)
            blocks[place] = NIL
            blocks[pair + OCCUPIED] -= 1


@apart
def sweep(program: Program, state: SharedState, now: Int) -> None:
    """Release expired nodes, first whole stacks, and then the expired lower part of other stacks."""
    blocks, links, nodes, counters = state.blocks, state.links, state.nodes, state.counters
    within, state_range, trace_first = program.within, program.state_range, state.trace_first
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            following = np.int64(blocks[pair + NEXT])
            pattern = blocks[pair + PATTERN]
            if within[pattern] != 0:
                states = state_range[pattern + 1] - state_range[pattern]
                trim_pair(state, pair, states, now)
                if blocks[pair + OCCUPIED] == 0:
                    close_pair(state, pair, states)
            pair = following
    for node in range(nodes.shape[0]):
        below = links[node, BELOW]
        if links[node, REFERENCES] != 0 and below != NIL and nodes[node, EVENT] & 1 and nodes[below, MEASURE] <= now:
            links[node, BELOW] = NIL
            release(state, below)
    counters[SWEEPS] += 1
    counters[SWEEP_AT] = max(1_024, 2 * counters[NODES])


@apart
def close_trace(program: Program, state: SharedState, trace: Int) -> None:
    """Release all data of a trace."""
    blocks, state_range = state.blocks, program.state_range
    pair = np.int64(state.trace_first[trace])
    while pair != NIL:
        following = np.int64(blocks[pair + NEXT])
        pattern = blocks[pair + PATTERN]
        close_stacks(state, pair, state_range[pattern + 1] - state_range[pattern])
        pair = following


@apart
def close_stacks(state: SharedState, pair: Int, states: Int) -> None:
    """Empty the stacks of a pair and close the pair."""
    blocks = state.blocks
    for place in range(pair + HEADER, pair + HEADER + states - 1):
        if blocks[place] != NIL:
            release(state, blocks[place])
    close_pair(state, pair, states)
