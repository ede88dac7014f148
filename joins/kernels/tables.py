"""The tables of a windowed join.

A *node* is a stored event. It is in two lists: the events of its input, oldest first, and the events of its key in its
input. A *cluster* is a key: the lists of all inputs, and which inputs have closed it (the inter-stream cluster index of
punctuation-aware window joins, specs/punctuated-joins section 3.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NIL = -1
FINISHED = -2  # in combinations that may lack inputs: absent, and the input has finished the key
NEVER = -(2**62)  # before every time

# Kinds of items.
EVENT = 0  # an event with a key
CLOSING = 1  # no more events of the key arrive on the input
PLACE = 2  # an event without a key: it joins nothing and takes a place in a window of a number of events
TIME = 3  # no item before this time follows; input and key have no meaning
REMINDER = 4  # a closing of a key in a range that was closed before; does not count as a duplicate
KNOWN = 5  # a closing that has no effect on a key without state; does not count as a duplicate

# Statuses that kernels return: done, or stopped before an item because there was no room.
DONE = 0
NODES_FULL = 1
CLUSTERS_FULL = 2
OUTPUT_FULL = 3

# Why a key is closed.
REGULAR = 0  # every input closed it
WINDOW_ASSISTED = 1  # an input closed it, and the last of its events of the key left the window
IMMEDIATE = 2  # an input closed it, and held no event of it

# Reasons of results.
LAST_EVENT = 0  # the combination is complete
BY_WINDOW = 1  # an event is absent, and the present event or the last possible partner has left its window
BY_CLOSING = 2  # an event is absent, and an input has announced that none will follow

# Bits of NODE.flags.
ALIVE = 1  # in the list of its key
JOINED = 2  # part of a combination

# Bits of KEYED.ends.
CLOSED_FOR_GOOD = 1  # no combination can contain the key any more
REPORTED_OVER = 2  # the key was reported as over

# Indices of JoinState.counters.
NODES = 0  # nodes in use, places included
FREE_NODES = 1  # nodes on the stack of free nodes
FRESH_NODES = 2  # nodes that were ever used
CLUSTERS = 3
FREE_CLUSTERS = 4
FRESH_CLUSTERS = 5
NOW = 6  # time, us; NEVER before the first item
SEQUENCE = 7  # sequence number of the next event
OPEN_NODES = 8  # nodes in the list of a key
DEAD = 9  # keys that are closed and remembered
DROPPED = 10  # events of closed keys
ON_THE_FLY = 11  # events that need not be stored
PURGED = 12  # stored events that a closing made useless
EXPIRED = 13  # events that left their window
DUPLICATES = 14  # closings of keys that the input had already closed
VIOLATIONS = 15  # events of keys that their input had closed
LOOKUPS = 16  # look-ups of keys
RESULTS = 17
CLOSINGS = 18
ABSENTS = 19
FORGOTTEN = 20  # closed keys beyond the number that is remembered
OLDEST_DEAD = 21  # first cluster of the list of closed keys
NEWEST_DEAD = 22
NEEDED = 23  # room, in results, that the item needs before which the kernel stopped
N_SAVED = 24  # counters before this index are saved
CLOSED_KEYS = 24  # known keys that an input has closed
N_COUNTERS = 25

MOST_COUNTED = 2**31  # greater numbers of combinations are not exact


class Rules(NamedTuple):
    """The declaration of a join as arrays: windows, outer and optional inputs, and limits.

    Most have an entry per input.
    """

    spans_us: NDArray[np.int64]  # an event of this age is outside of the window; 0: no window of time
    counts: NDArray[np.int64]  # newest events of the input in the window; NIL: no such window
    of_key: NDArray[np.int64]  # newest events of the key in the window; NIL: no such window
    reports_absent: NDArray[np.bool_]  # unjoined events of the input are reported once they can no longer join
    reporters: NDArray[np.uint64]  # (1,) inputs with ``reports_absent``, as bits: they must close a key to end it
    most_dead: NDArray[np.int64]  # (1,) the most closed keys that are remembered
    is_plain: NDArray[np.bool_]  # (1,) windows of time or none, and no input reports absent ones
    required: NDArray[np.uint64]  # (1,) inputs that combinations may not lack, as bits (kernels/outer.py)
    reports_all: NDArray[np.bool_]  # (1,) absent events are reported whether or not they have joined something
    most: NDArray[np.int64]  # (1,) most results that one event of a key may lead to at once; further results are cut
    covers: NDArray[np.bool_]  # (1,) only enough combinations are written for each event to be in one


# Records: members that are read together are stored together.
NODE = np.dtype(
    [
        ("time", np.int64),  # us
        ("sequence", np.int64),  # NIL: a place
        ("cluster", np.int32),
        ("of_key", np.int32),  # next node of the key in its input
        ("of_input", np.int32),  # next node of the input
        ("input_before", np.int32),  # the node before it
        ("flags", np.int32),
        ("spare", np.int32),
    ]
)
KEYED = np.dtype(
    [
        ("key", np.uint64),
        ("closed", np.uint64),  # inputs that closed the key, as bits
        ("filled", np.int32),  # inputs that have nodes
        ("ends", np.int32),  # bits
        ("before", np.int32),  # neighbours in the list of keys that are closed for good
        ("behind", np.int32),
        ("cause", np.int32),  # why the key is closed for good
        ("touched", np.int32),  # when the last event or closing of the key arrived, in units of 256 events; 0: unknown
    ]
)
LIST = np.dtype([("head", np.int32), ("tail", np.int32), ("live", np.int32)])  # oldest, newest node; number
SIDE = np.dtype([("first", np.int32), ("last", np.int32), ("size", np.int64)])  # for an input, with places


class JoinState(NamedTuple):
    """The state of a join between batches: hash table of keys, stored events, lists of both, and counters."""

    slots: NDArray[np.uint64]  # (slots, 2): key, cluster + 1; a power of two, 0 in the second: empty
    keyed: NDArray[np.void]  # (clusters,) KEYED
    lists: NDArray[np.void]  # (clusters, inputs) LIST
    free_clusters: NDArray[np.int32]
    nodes: NDArray[np.void]  # NODE
    free_nodes: NDArray[np.int32]
    sides: NDArray[np.void]  # (inputs,) SIDE
    counters: NDArray[np.int64]
    seen: NDArray[
        np.int64
    ]  # (clusters, inputs) events so far when the input last had one of the key (kernels/outer.py)


class Items(NamedTuple):
    """The items of one batch in the order of their times, as in ``joins.ItemColumns``."""

    kinds: NDArray[np.uint8]
    inputs: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    times: NDArray[np.int64]


class Output(NamedTuple):
    """The output of one batch, as in ``joins.JoinedColumns``. Items are given by their indices in the batch."""

    members: NDArray[np.int64]  # (results, inputs) sequences of a combination's events; NIL, FINISHED: absent
    result_times_us: NDArray[np.int64]
    result_items: NDArray[np.int32]
    result_whys: NDArray[np.uint8]  # reasons
    closing_keys: NDArray[np.uint64]
    closing_causes: NDArray[np.uint8]
    closing_times_us: NDArray[np.int64]
    closing_items: NDArray[np.int32]
    closing_places: NDArray[np.int64]  # number of results before the closing
    violations: NDArray[np.int32]  # items
    cut_places: NDArray[np.int64]  # for each event whose results were cut, the last result that was written
    filled: NDArray[np.int64]  # (5,) numbers of results, closings, violations; a meaningless value (look_ahead); cuts
    cursors: NDArray[np.int32]  # (inputs,) scratch
