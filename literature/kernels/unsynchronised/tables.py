"""The tables of unsynchronised joins: items, disorder of the inputs, buffers and results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NIL = -1
NEVER = -(2**63)  # a closing key before every key: nothing is closed
FOREVER = 2**63 - 1  # a closing key after every key: the input has ended
NO_TIME = -(2**62)

# Kinds of items.
ARRIVAL = 0
CLOSING = 1  # no arrival of the input up to ``closing`` comes any more

# Statuses of kernels: done, or stopped before an item.
DONE = 0
RECORDS_FULL = 1
COUNTS_FULL = 2
EPOCH_BEGINS = 3
NODES_FULL = 4
CLUSTERS_FULL = 5
OUTPUT_FULL = 6

ITEM = np.dtype(
    [
        ("key", np.int64),
        ("sequence", np.int64),  # number of the arrival, among those of all inputs
        ("time", np.int64),  # us
        ("closing", np.int64),  # closing key of the input after this item
        ("factor", np.int64),  # scrambling factor of the input from which the closing key was computed
        ("input", np.int32),
        ("kind", np.int32),
    ]
)

# Indices of DisorderState.numbers.
ARRIVALS = 0
FIRST_RECORD = 1  # first retained record
END_OF_RECORDS = 2  # after the last record
FACTOR = 3  # largest disorder so far
UNDERFLOWS = 4  # arrivals whose disorder is a lower bound, as older records were dropped
HIGHEST_DROPPED = 5  # highest key of the dropped records
CLOSED = 6  # latest closing key
MULTIPLICITY = 7
COUNTED = 8  # keys in the table of counts
USED_FACTOR = 9
N_NUMBERS = 10

# Indices of DisorderRules.numbers.
GIVEN = 0  # scrambling factor that is known; NIL: monitored
BLOCK_ROWS = 1
IS_EXACT = 2  # keeps all records
HEADROOM = 3  # of a monitored factor, in thousandths
MOST = 4  # disorder beyond which keys count as begun again; NIL: no bound
WARM_UP = 5  # first arrivals, during which a monitored factor closes no key
BLOCKS = 6  # newest blocks, whose largest disorder is the monitored factor
N_RULES = 7

RECORD = np.dtype([("key", np.int64), ("position", np.int64)])


class DisorderRules(NamedTuple):
    """The options of monitors, by input."""

    numbers: NDArray[np.int64]  # (inputs, N_RULES)


class DisorderState(NamedTuple):
    """The record stack of each input: keys higher than all before them, with their positions, both ascending."""

    records: NDArray[np.void]  # (inputs, room) RECORD
    numbers: NDArray[np.int64]  # (inputs, N_NUMBERS)
    blocks: NDArray[np.int64]  # (inputs, blocks) largest disorder in each of the newest blocks of arrivals
    counts: NDArray[np.uint64]  # (inputs, slots, 2): scrambled key, number of its arrivals; a power of two


# Policies: the arrivals that buffers forget.
BY_KEYS = 0  # those whose keys every other input has closed (policy P2)
BY_COUNTS = 1  # all but the newest, whose number the memory model counts (policy P1)
BY_SIZES = 2  # all but a given number of the newest

# Indices of the rules of buffers.
POLICY = 0
DROPS_DEAD = 1  # arrivals whose key some input has closed without an arrival of it
IDLE_US = 2  # time without arrivals after which an input closes what all others have closed; 0: never
MOST_RESULTS = 3  # greatest number of results of one arrival
TRACES = 4  # writes sizes after each item
N_BUFFER_RULES = 5

# Indices of BufferState.counters.
NODES = 0  # resident arrivals
FREE_NODES = 1  # nodes on the stack of free ones
FRESH_NODES = 2  # nodes that were ever used
CLUSTERS = 3
FREE_CLUSTERS = 4
FRESH_CLUSTERS = 5
NOW = 6  # us
RESULTS = 7
CAPPED = 8  # combinations beyond MOST_RESULTS
DEAD = 9  # arrivals dropped, or not stored, as some input has closed their key without an arrival of it
ON_THE_FLY = 10  # arrivals that need not be stored, as every other input had closed their key
PURGED = 11  # arrivals dropped as every other input closed their key
EVICTED = 12  # arrivals that left a buffer of limited size
IDLE_CLOSINGS = 13
NEEDED = 14  # results for which the item before which the kernel stopped needs room
N_COUNTERS = 15

# Indices of BufferState.sides.
RESIDENT = 0
OLDEST = 1  # node; used by buffers of limited size only
NEWEST = 2
TAKEN = 3  # arrivals
LATE = 4  # arrivals up to the closing key
CLOSING_KEY = 5
SCRAMBLING = 6  # scrambling factor that was last used
HEAP_SIZE = 7
LAST_TIME = 8  # time of the last arrival, us
MOST_RESIDENT = 9
RESIDENT_SUM = 10  # sum of RESIDENT over all items
MOST_OF_KEY = 11  # greatest number of arrivals of one key, while some input had not closed it
N_SIDE = 12

NODE = np.dtype(
    [
        ("sequence", np.int64),
        ("cluster", np.int32),
        ("of_key", np.int32),  # next node of the key in its input
        ("of_input", np.int32),  # next node of the input
        ("spare", np.int32),
    ]
)
KEYED = np.dtype(
    [
        ("key", np.int64),
        ("closed", np.uint64),  # inputs that closed the key, as bits
        ("live", np.int64),  # resident arrivals of all inputs
    ]
)
LIST = np.dtype([("head", np.int32), ("tail", np.int32), ("live", np.int32), ("arrived", np.int32)])
HEAP = np.dtype([("key", np.int64), ("cluster", np.int64)])


class BufferState(NamedTuple):
    """Resident arrivals by key. A *cluster* is a key that some input has not closed, or with a resident arrival."""

    slots: NDArray[np.uint64]  # (slots, 2): scrambled key, cluster + 1; a power of two
    keyed: NDArray[np.void]  # (clusters,) KEYED
    lists: NDArray[np.void]  # (clusters, inputs) LIST
    free_clusters: NDArray[np.int32]
    nodes: NDArray[np.void]  # NODE
    free_nodes: NDArray[np.int32]
    heaps: NDArray[np.void]  # (inputs, clusters) HEAP: keys that the input has not closed, lowest first
    sides: NDArray[np.int64]  # (inputs, N_SIDE)
    ahead: NDArray[np.int64]  # (inputs, inputs) arrivals of the first input above the closing key of the second
    counters: NDArray[np.int64]


class Combined(NamedTuple):
    """The results of items."""

    members: NDArray[np.int64]  # (results, inputs) sequences
    result_times: NDArray[np.int64]  # us
    late: NDArray[np.int64]  # (items,) sequences of arrivals up to the closing key of their input
    resident: NDArray[np.int64]  # (items, inputs) after each item; no rows unless TRACES
    predicted: NDArray[np.int64]  # (items, inputs) slots that the memory model counts; no rows unless TRACES
    filled: NDArray[np.int64]  # (2,) number of results, number of late arrivals
    cursors: NDArray[np.int32]  # (inputs,) scratch
