"""A read-only view of the shared nodes, with a row for each trace and pattern."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.shared.paths import count_paths
from nfa.kernels.shared.tables import (
    EVENT,
    HEADER,
    MEASURE,
    MOST_COUNTED,
    NEXT,
    NIL,
    PATTERN,
    Int,
    Output,
    Program,
    SharedState,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel


@kernel
def held_pairs(program: Program, state: SharedState, output: Output, now: Int, entries: NDArray[np.int64]) -> Int:
    """List the (trace, pattern) pairs that have unexpired partial matches, and return the number of pairs.

    For each pair, ``entries`` receives (trace, pattern, furthest state, its newest node, number of partial matches).
    ``output.memo`` is scratch memory, which must have room for all nodes if some pattern has a window.
    """
    program, state, lent, entries = borrowed(program), borrowed(state), borrowed(output), borrowed(entries)
    blocks, nodes, trace_first, state_range = state.blocks, state.nodes, state.trace_first, program.state_range
    count = np.int64(0)
    for trace in range(trace_first.shape[0]):
        pair = np.int64(trace_first[trace])
        while pair != NIL:
            pattern = blocks[pair + PATTERN]
            base, within = state_range[pattern], program.within[pattern]
            best, farthest, ways = np.int64(NIL), np.int64(0), np.int64(0)
            for place in range(1, state_range[pattern + 1] - base):
                head = np.int64(blocks[pair + HEADER + place - 1])
                if head == NIL or (within != 0 and nodes[head, MEASURE] <= now):
                    continue
                paths = nodes[head, MEASURE] if within == 0 else count_paths(state, lent, head, now, within)
                ways = min(ways + paths, np.int64(MOST_COUNTED))
                further = np.int64(program.depth[base + place]) - np.int64(program.depth[base + farthest])
                if best == NIL or further > 0 or (further == 0 and nodes[head, EVENT] > nodes[best, EVENT]):
                    best, farthest = head, np.int64(place)
            if best != NIL:
                entries[count, 0], entries[count, 1], entries[count, 2] = trace, pattern, farthest
                entries[count, 3], entries[count, 4] = best, ways
                count += 1
            pair = np.int64(blocks[pair + NEXT])
    return count
