"""Packing of shared-node state into dense arrays for a snapshot, and unpacking, which checks every link."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.shared.tables import (
    ALIAS_MASK,
    BAD_EVENT,
    BAD_HEAD,
    BAD_LINK,
    BAD_MEASURE,
    BAD_PAIR,
    BAD_SIBLING,
    BEFORE,
    BELOW,
    BLOCK_TOP,
    EVENT,
    EVENT_BITS,
    HEADER,
    HELD,
    MATCHED,
    MEASURE,
    MOST_COUNTED,
    NEXT,
    NIL,
    NODES,
    OCCUPIED,
    PAIRS,
    PATTERN,
    REFERENCES,
    SIBLING,
    SOUND,
    TRACE,
    UNIT,
    UNREACHED,
    USED_WORDS,
    Int,
    Packed,
    Program,
    SharedState,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel


@kernel
def count_heads(program: Program, state: SharedState) -> Int:
    """Return the number of stacks of all pairs, including empty stacks: the length of ``Packed.heads``."""
    program, state = borrowed(program), borrowed(state)
    blocks, trace_first, state_range = state.blocks, state.trace_first, program.state_range
    count = 0
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            pattern = blocks[pair + PATTERN]
            count += state_range[pattern + 1] - state_range[pattern] - 1
            pair = np.int64(blocks[pair + NEXT])
    return count


@kernel
def pack(
    program: Program, state: SharedState, traces: NDArray[np.int32], numbers: NDArray[np.int32], packed: Packed
) -> None:
    """Write the state to ``packed``, with new numbers for traces and nodes.

    ``traces`` has the new trace number of each old number. ``numbers`` is scratch memory, indexed by node.
    """
    program, state, packed = borrowed(program), borrowed(state), borrowed(packed)
    traces, numbers = borrowed(traces), borrowed(numbers)
    blocks, links, nodes, trace_first = state.blocks, state.links, state.nodes, state.trace_first
    state_range = program.state_range
    packed_links, words, times = packed.links, packed.words, packed.times
    count = np.int32(0)
    for node in range(nodes.shape[0]):
        numbers[node] = count
        count += links[node, REFERENCES] != 0
    count = np.int32(0)
    for node in range(nodes.shape[0]):
        if links[node, REFERENCES] == 0:
            continue
        below, before = links[node, BELOW], links[node, BEFORE]
        packed_links[count, 0] = numbers[below] if below != NIL else NIL
        packed_links[count, 1] = numbers[before] if before != NIL else NIL
        packed_links[count, 2] = numbers[links[node, SIBLING]]
        words[count, 0], words[count, 1] = nodes[node, EVENT], nodes[node, MEASURE]
        if times.shape[0] > 0:
            times[count] = state.times[node]
        count += 1
    number, place = 0, 0
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            pattern = blocks[pair + PATTERN]
            packed.pair_trace[number], packed.pair_pattern[number] = traces[trace], pattern
            packed.pair_matched[number] = blocks[pair + MATCHED]
            number += 1
            for stack in range(pair + HEADER, pair + HEADER + state_range[pattern + 1] - state_range[pattern] - 1):
                packed.heads[place] = numbers[blocks[stack]] if blocks[stack] != NIL else NIL
                place += 1
            pair = np.int64(blocks[pair + NEXT])


@kernel
def unpack_pairs(program: Program, state: SharedState, packed: Packed, pairs: NDArray[np.int32], traces: Int) -> Int:
    """Fill the blocks of pairs from packed state, and count references to nodes.

    Returns a fault, or ``SOUND`` if there is none. A block is the memory of a pair, with the heads of its stacks.
    ``pairs`` receives the offsets of the blocks.
    """
    program, state, packed, pairs = borrowed(program), borrowed(state), borrowed(packed), borrowed(pairs)
    blocks, links, counters, state_range = state.blocks, state.links, state.counters, program.state_range
    heads, nodes = packed.heads, packed.words.shape[0]
    place, top = 0, 0
    for number in range(pairs.shape[0]):
        trace, pattern = packed.pair_trace[number], packed.pair_pattern[number]
        if not (0 <= trace < traces and 0 <= pattern < program.is_shared.shape[0]) or not program.is_shared[pattern]:
            return BAD_PAIR
        states = state_range[pattern + 1] - state_range[pattern]
        words = (HEADER + states - 1 + UNIT - 1) // UNIT * UNIT
        if place + states - 1 > heads.shape[0] or top + words > blocks.shape[0]:
            return BAD_HEAD
        pairs[number] = top
        for word in range(top, top + words):
            blocks[word] = NIL
        blocks[top + TRACE], blocks[top + PATTERN], blocks[top + OCCUPIED] = trace, pattern, 0
        blocks[top + MATCHED] = packed.pair_matched[number]
        for stack in range(top + HEADER, top + HEADER + states - 1):
            head = heads[place]
            place += 1
            if not NIL <= head < nodes:
                return BAD_HEAD
            if head != NIL:
                blocks[stack] = head
                blocks[top + OCCUPIED] += 1
                links[head, REFERENCES] += 1
        if blocks[top + OCCUPIED] == 0 or blocks[top + MATCHED] < 0:
            return BAD_PAIR
        top += words
    counters[BLOCK_TOP] = counters[USED_WORDS] = top
    counters[PAIRS] = pairs.shape[0]
    return SOUND if place == heads.shape[0] else BAD_HEAD


@inlined
def has_wrong_measure(words: NDArray[np.int64], event: Int, measure: Int, below: Int, before: Int) -> np.bool_:
    """Return whether the measure of a saved node contradicts the nodes to which it links; see ``measure_of``."""
    wrong: np.bool_ = np.bool_(False)
    for other in (below, before):
        if other != NIL and (words[other, 0] ^ event) & 1:
            wrong = np.bool_(True)
    if event & 1:
        wrong |= below != NIL and words[below, 1] > measure
    else:
        ways = words[before, 1] if before != NIL else np.int64(1)
        if below != NIL:
            ways = min(ways + words[below, 1], MOST_COUNTED)
        wrong |= measure != ways or measure < 1
    return wrong


@inlined
def is_linked_wrong(packed_links: NDArray[np.int32], words: NDArray[np.int64], node: Int, most_tied: Int) -> bool:
    """Return whether the links of a node are invalid.

    Links are invalid if they are out of range or lead to later events. They are also invalid if more than ``most_tied``
    nodes below the node bind the node's event.
    """
    count, event = words.shape[0], words[node, 0] >> EVENT_BITS
    below, before, sibling = packed_links[node, 0], packed_links[node, 1], packed_links[node, 2]
    wrong = not (NIL <= below < count and NIL <= before < count and 0 <= sibling < count)
    if not wrong:
        tied: Int = 0
        other = below
        while other != NIL and words[other, 0] >> EVENT_BITS == event and tied <= most_tied:
            other = packed_links[other, 0]
            tied += 1
            if not NIL <= other < count:
                tied, other = most_tied + 1, np.int32(NIL)
        wrong = bool(tied > most_tied or (other != NIL and words[other, 0] >> EVENT_BITS > event))
        wrong |= bool(before != NIL and words[before, 0] >> EVENT_BITS >= event)
    return wrong


@kernel
def unpack_nodes(state: SharedState, packed: Packed, sequences: Int, aliases: Int, most_tied: Int) -> Int:
    """Fill nodes from packed state, check their links and count references.

    Return a fault, or ``SOUND`` if there is none.
    """
    state, packed = borrowed(state), borrowed(packed)
    links, nodes, counters = state.links, state.nodes, state.counters
    packed_links, words = packed.links, packed.words
    count, n_times = words.shape[0], packed.times.shape[0]
    for node in range(count):
        if is_linked_wrong(packed_links, words, node, most_tied):
            return BAD_LINK
        below, before, sibling = packed_links[node, 0], packed_links[node, 1], packed_links[node, 2]
        event, measure = words[node, 0], words[node, 1]
        if not 0 <= event >> EVENT_BITS < sequences or (event >> 1) & ALIAS_MASK >= aliases or event & 1 > n_times:
            return BAD_EVENT
        if has_wrong_measure(words, event, measure, below, before):
            return BAD_MEASURE
        links[node, BELOW], links[node, BEFORE], links[node, SIBLING] = below, before, sibling
        nodes[node, EVENT], nodes[node, MEASURE] = event, measure
        if n_times > 0:
            state.times[node] = packed.times[node]
    for node in range(count):
        for other in (links[node, BELOW], links[node, BEFORE]):
            if other != NIL:
                links[other, REFERENCES] += 1
    counters[NODES] = count
    return SOUND


@kernel
def count_held(state: SharedState, seen: NDArray[np.bool_]) -> Int:
    """Count the bound events, and check that the nodes of each event form a cycle of siblings.

    Return a fault, or ``SOUND`` if there is none. ``seen`` is scratch memory, indexed by node.
    """
    state, seen = borrowed(state), borrowed(seen)
    links, nodes, counters = state.links, state.nodes, state.counters
    for node in range(seen.shape[0]):
        if links[node, REFERENCES] == 0:
            return UNREACHED
        if seen[node]:
            continue
        counters[HELD] += 1
        other = np.int32(node)
        while not seen[other]:
            seen[other] = True
            if (nodes[links[other, SIBLING], EVENT] ^ nodes[other, EVENT]) >> EVENT_BITS != 0:
                return BAD_SIBLING
            other = links[other, SIBLING]
        if other != node:
            return BAD_SIBLING
    return SOUND
