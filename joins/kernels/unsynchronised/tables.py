"""The tables of unsynchronised joins: arrivals, and what is known of the order in which each input brings its keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NIL = -1
NEVER = -(2**63)  # a closing key before every key: nothing is closed
FOREVER = 2**63 - 1  # a closing key behind every key: the input has ended
NO_TIME = -(2**62)

# What an item is.
ARRIVAL = 0
CLOSING = 1  # no arrival of the input up to ``closing`` comes any more
EPOCH = 2  # keys begin again: everything that is known is forgotten

# What a kernel returns: it is done, or stopped before an item.
DONE = 0
RECORDS_FULL = 1
COUNTS_FULL = 2
EPOCH_BEGINS = 3
NODES_FULL = 4
CLUSTERS_FULL = 5
HEAPS_FULL = 6
OUTPUT_FULL = 7

ITEM = np.dtype(
    [
        ("key", np.int64),
        ("sequence", np.int64),  # of the arrival, among those of all inputs
        ("time", np.int64),  # us
        ("closing", np.int64),  # after this item, no key up to this one comes on the input
        ("factor", np.int64),  # scrambling factor of the input that was used for it
        ("input", np.int32),
        ("kind", np.int32),
    ]
)

# Indices of DisorderState.numbers.
ARRIVALS = 0
FIRST_RECORD = 1  # of those retained
END_OF_RECORDS = 2  # behind the last one
FACTOR = 3  # largest disorder so far
UNDERFLOWS = 4  # arrivals whose disorder is a lower bound, as older records were dropped
HIGHEST_DROPPED = 5  # highest key of the dropped records
CLOSED = 6  # closing key that was used last
MULTIPLICITY = 7
COUNTED = 8  # keys in the table of counts
USED_FACTOR = 9
N_NUMBERS = 10

# Indices of DisorderRules.numbers.
GIVEN = 0  # scrambling factor that is known; NIL: monitored
BLOCK_ROWS = 1
IS_EXACT = 2  # keeps all records
HEADROOM = 3  # of a monitored factor, in thousandths
MOST = 4  # disorder beyond which keys have begun again; NIL: none
WARM_UP = 5  # arrivals before which a monitored factor closes nothing
N_RULES = 6

RECORD = np.dtype([("key", np.int64), ("position", np.int64)])


class DisorderRules(NamedTuple):
    """What is known beforehand, by input."""

    numbers: NDArray[np.int64]  # (inputs, N_RULES)


class DisorderState(NamedTuple):
    """The record stack of each input: keys higher than all before them, with their positions, both ascending."""

    records: NDArray[np.void]  # (inputs, room) RECORD
    numbers: NDArray[np.int64]  # (inputs, N_NUMBERS)
    blocks: NDArray[np.int64]  # (inputs, blocks) largest disorder in each of the newest blocks of arrivals
    counts: NDArray[np.uint64]  # (inputs, slots, 2): scrambled key, number of its arrivals; a power of two
