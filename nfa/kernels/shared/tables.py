"""The arrays of the shared-node kernel, with constants for their columns, counters and status codes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int: TypeAlias = int | np.int32 | np.int64

NIL = -1
NO_CELL = 0  # of the filter index
EVERY_TERM = 0x7FFFFFFF  # all terms of a pattern, as bits

# Status of the kernel: done, or stopped before a group of transitions because an array is full.
DONE = 0
NODES_FULL = 1
BLOCKS_FULL = 2
PAIRS_FULL = 3
MATCHES_FULL = 4
BOUND_FULL = 5
PATH_FULL = 6
ENDINGS_FULL = 7
MEMO_FULL = 8

# Indices of SharedState.counters.
BLOCK_TOP = 0  # number of words of blocks ever used
NODES = 2  # number of nodes in use
HELD = 3  # number of bound events: an event counts once for each pair with a node for it
PAIRS = 4
INDEXED = 5  # number of pairs in the index
PEAK_HELD = 6  # highest HELD after an event was fully processed
MATCHES = 7
ENDINGS = 8
OVERFLOW = 9  # number of matches beyond the limit
SWEEP_AT = 10  # number of nodes at which expired nodes are released
SWEEPS = 11
USED_WORDS = 12  # words of blocks in use
TOUCHED = 13  # sum of prefetched values; stored so that the compiler keeps the reads
RELEASED = 14  # number of bound events dropped because of a guard
N_COUNTERS = 15

# The words of a pair's block. The size of a block is a multiple of UNIT.
TRACE, PATTERN, NEXT, PREVIOUS, OCCUPIED, MATCHED, HEADER = 0, 1, 2, 3, 4, 5, 6
UNIT = 4

# Columns of SharedState.links, a view of the first two words of each row of SharedState.nodes.
BELOW, BEFORE, REFERENCES, SIBLING = 0, 1, 2, 3
# Columns of SharedState.nodes. EVENT: sequence << 16 | alias << 1 | whether the pattern has WITHIN. MEASURE: number of
# partial matches in the stack; under WITHIN, the time at which the last of them expires.
EVENT, MEASURE = 2, 3
EVENT_BITS, ALIAS_MASK = 16, 0x7FFF

MOST_COUNTED = 2**53
ENDING_WIDTH = 5  # row, pattern, monitor before, monitor after, state
SPREAD = np.uint64(0x9E3779B1)
LOW = np.uint64(0xFFFFFFFF)
BLOCK = 16  # number of visits that are prefetched together, a power of two
MOST_AHEAD = 4  # maximum number of prefetched transitions of a visit
LARGE = 8_192  # prefetching pays if there is room for more nodes


class Program(NamedTuple):
    """The compiled patterns.

    Transitions are grouped by the type or index cell to which they listen, then by pattern. State 0 is the start.
    """

    listen: NDArray[np.int32]  # (types + 1,) ranges of the transitions that listen to all events of a type
    cell_begin: NDArray[np.int32]  # by cell of the filter index: ranges of transitions, after those by type
    cell_end: NDArray[np.int32]
    group_end: NDArray[np.int32]  # end of the transitions with the same type, cell and pattern
    pattern: NDArray[np.int32]
    source: NDArray[np.int32]  # state within the pattern
    target: NDArray[np.int32]
    alias: NDArray[np.int32]
    predicate: NDArray[np.int32]  # row of Columns.passed
    accepts: NDArray[np.bool_]
    goes_on: NDArray[np.bool_]
    state_range: NDArray[np.int32]  # (patterns + 1,) columns of Guards.live
    state_pattern: NDArray[np.int32]  # (states,)
    state_terms: NDArray[np.uint32]  # (states,) terms, as bits, that a partial match in the state can complete
    depth: NDArray[np.int32]  # (states,) progress; an early termination names the dead state with the greatest progress
    is_shared: NDArray[np.bool_]  # (patterns,) whether this engine runs the pattern
    within: NDArray[np.int64]  # (patterns,) us; 0: no WITHIN
    is_next: NDArray[np.bool_]  # (patterns,)
    limit: NDArray[np.int64]  # (patterns,)


class SharedState(NamedTuple):
    """The state that the engine keeps from batch to batch."""

    trace_first: NDArray[np.int32]  # (traces,) the trace's first pair
    blocks: NDArray[np.int32]
    block_free: NDArray[np.int32]  # (size classes,) heads of free lists
    slots: NDArray[np.uint64]  # open-addressing index, without first pairs: hash of (trace, pattern) << 32 | block + 1
    nodes: NDArray[np.int64]  # (nodes, 4)
    links: NDArray[np.int32]  # (nodes, 8), a view of the same memory
    free: NDArray[np.int32]  # (nodes,) the free nodes, starting at counters[NODES] with the next node to use
    times: NDArray[np.int64]  # (nodes,) times of the events, us; empty if no pattern has WITHIN
    counters: NDArray[np.int64]


class Visited(NamedTuple):
    """The relevant rows of a batch, with their traces and monitor numbers. This is the input of the kernel."""

    rows: NDArray[np.int32]
    traces: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    kill: NDArray[np.int32]  # list of Tables.kills
    ends: NDArray[np.bool_]
    types: NDArray[np.int32]  # by row
    times: NDArray[np.int64]
    clocks: NDArray[np.int64]  # newest time of all traces up to the row
    passed: NDArray[np.bool_]  # (predicates, rows)
    cells: NDArray[np.int32]  # (dimensions of the filter index, rows)
    released: NDArray[np.int32]  # (traces,) number of bound events dropped because of a guard


class Tables(NamedTuple):
    """The tables of a guard that this engine reads (see ``traces.Guards``)."""

    gate: NDArray[np.int32]
    truth: NDArray[np.int32]
    policy: NDArray[np.uint8]
    live: NDArray[np.uint32]
    kill_from: NDArray[np.int32]
    kills: NDArray[np.int32]


class Output(NamedTuple):
    """Results of the shared-node kernel, and scratch memory."""

    match_row: NDArray[np.int32]
    match_trace: NDArray[np.int32]
    match_pattern: NDArray[np.int32]
    match_end: NDArray[np.int64]  # end of the bound events of the match
    bound_alias: NDArray[np.int32]
    bound_sequence: NDArray[np.int64]
    endings: NDArray[np.int64]
    dropped: NDArray[np.int64]  # (n, 3) row, pattern, number of matches
    filled: NDArray[np.int64]  # numbers of matches, bound events, endings, dropped rows, calls of ``count_paths``
    path: NDArray[np.int64]  # (depth, 3) node, latest and earliest time of the later events
    words: NDArray[np.int64]  # (depth,) events of the path, filled from the end
    taken: NDArray[np.int32]  # (transitions of a group, 2) transition, stack
    memo: NDArray[np.int64]  # (nodes or 0, 3) number of partial matches, stamp, stack of ``count_paths``


class Matching(NamedTuple):
    """All arrays that matching a batch reads and writes."""

    program: Program
    tables: Tables
    state: SharedState
    visited: Visited
    output: Output


class Packed(NamedTuple):
    """Shared-node state in dense arrays for a snapshot. Pairs are in the order of traces. Nodes have new numbers."""

    pair_trace: NDArray[np.int32]
    pair_pattern: NDArray[np.int32]
    pair_matched: NDArray[np.int32]
    heads: NDArray[np.int32]  # tops of the stacks of each pair, pair after pair, without state 0
    links: NDArray[np.int32]  # (nodes, 3) below, before, sibling
    words: NDArray[np.int64]  # (nodes, 2) event, measure
    times: NDArray[np.int64]  # (nodes,); empty if no pattern has WITHIN


# Faults of packed state.
SOUND = 0
BAD_PAIR = 1
BAD_HEAD = 2
BAD_LINK = 3
BAD_SIBLING = 4
BAD_EVENT = 5
BAD_MEASURE = 6
UNREACHED = 7
