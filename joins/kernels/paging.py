"""Kernels that take keys, with all of their events, out of the tables of a join, and put them back unchanged.

The caller puts a key back before the key's next item, and before the time at which the key has a result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joins.kernels.clusters import add_cluster, add_node, link_node, remove_cluster, remove_node
from joins.kernels.tables import CLOSED_KEYS, NIL, OPEN_NODES, JoinState, Rules
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import find_slot

# A key that is taken out or put back.
KEY = np.dtype([("key", np.uint64), ("closed", np.uint64), ("rows", np.int64), ("cluster", np.int64)])
# An event that is taken out or put back.
ROW = np.dtype(
    [
        ("sequence", np.int64),
        ("time", np.int64),
        ("input", np.int32),
        ("flags", np.int32),  # flags of the node; from ``SEEN`` up, bits of inputs (``seen_with``)
        ("owner", np.int64),  # the place of the event's key
    ]
)


SEEN = 256  # the bit of the first input in ROW.flags


@inlined
def seen_with(lent: JoinState, cluster: np.int64, sequence: np.int64) -> np.int64:
    """Return the set of the inputs that had an event of the key after ``sequence``, as bits of ``ROW.flags``.

    While a key is out of the tables, these bits replace its numbers in ``JoinState.seen``. This suffices, because the
    numbers are only compared with the sequence numbers of stored events.
    """
    bits = np.int64(0)
    for number in range(lent.lists.shape[1] if lent.seen.shape[0] > 0 else 0):
        if sequence < lent.seen[cluster, number]:
            bits |= SEEN << number
    return bits


@kernel
def take_keys(state: JoinState, keys: NDArray[np.void], rows: NDArray[np.void]) -> int:
    """Remove keys and their events from the tables, and write them to ``keys`` and ``rows``.

    Return the number of events. The caller has filled in the hashed keys of ``keys`` (``KEY``). They are known and not
    closed for good. ``rows`` (``ROW``) has room for all events, and is written in the order of key, input and sequence
    number.
    """
    lent, filled = borrowed(state), 0
    for place in range(keys.shape[0]):
        cluster = np.int64(lent.slots[find_slot(lent.slots, keys[place]["key"]), 1]) - 1
        first = filled
        for number in range(lent.lists.shape[1]):
            node = np.int64(lent.lists[cluster, number]["head"])
            while node != NIL:
                rows[filled]["sequence"] = lent.nodes[node]["sequence"]
                rows[filled]["time"] = lent.nodes[node]["time"]
                rows[filled]["input"] = number
                rows[filled]["flags"] = lent.nodes[node]["flags"] | seen_with(
                    lent, cluster, np.int64(lent.nodes[node]["sequence"])
                )
                rows[filled]["owner"] = place
                filled += 1
                next_node = np.int64(lent.nodes[node]["of_key"])
                remove_node(lent, np.int64(number), node)
                node = next_node
        keys[place]["closed"] = lent.keyed[cluster]["closed"]
        keys[place]["rows"] = filled - first
        remove_cluster(lent, cluster)
    lent.counters[OPEN_NODES] -= filled
    return filled


@routine
def move_node(lent: JoinState, number: np.int64, node: np.int64, before: np.int64) -> None:
    """Move the last node of an input's list to the place after ``before``, or to the front if ``before`` is NIL."""
    last_but_one = lent.nodes[node]["input_before"]
    if last_but_one == before:
        return
    lent.nodes[last_but_one]["of_input"] = NIL
    lent.sides[number]["last"] = last_but_one
    if before == NIL:
        next_node = np.int64(lent.sides[number]["first"])
        lent.sides[number]["first"] = node
    else:
        next_node = np.int64(lent.nodes[before]["of_input"])
        lent.nodes[before]["of_input"] = node
    lent.nodes[node]["input_before"] = before
    lent.nodes[node]["of_input"] = next_node
    lent.nodes[next_node]["input_before"] = node


@inlined
def successor_of(lent: JoinState, number: np.int64, node: np.int64) -> np.int64:
    """Return the node after ``node`` in an input's list, or NIL at the end.

    If ``node`` is NIL, return the first node.
    """
    return np.int64(lent.sides[number]["first"]) if node == NIL else np.int64(lent.nodes[node]["of_input"])


@kernel
def put_keys(
    state: JoinState, rules: Rules, keys: NDArray[np.void], rows: NDArray[np.void], cursors: NDArray[np.int64]
) -> None:
    """Add keys that ``take_keys`` has removed to the tables again. The tables have room for the keys and their events.

    None of the ``keys`` (``KEY``) may be known. ``rows`` (``ROW``) are sorted by sequence number. If an input has a
    window of time, its list is sorted by sequence number again. Other lists need no order. ``cursors`` (inputs,) is
    scratch memory.
    """
    lent = borrowed(state)
    for place in range(keys.shape[0]):
        cluster = add_cluster(lent, find_slot(lent.slots, keys[place]["key"]), keys[place]["key"])
        lent.keyed[cluster]["closed"] = keys[place]["closed"]
        lent.counters[CLOSED_KEYS] += keys[place]["closed"] != np.uint64(0)
        lent.keyed[cluster]["touched"] = 0
        keys[place]["cluster"] = cluster
        for other in range(rules.spans_us.shape[0] if lent.seen.shape[0] > 0 else 0):
            lent.seen[cluster, other] = 0
    cursors[:] = NIL
    for place in range(rows.shape[0]):
        number, sequence = np.int64(rows[place]["input"]), rows[place]["sequence"]
        node = add_node(lent, number, np.int64(rows[place]["time"]), np.int64(sequence))
        if rules.spans_us[number] > 0:
            before = np.int64(cursors[number])
            next_node = successor_of(lent, number, before)
            while next_node != node and lent.nodes[next_node]["sequence"] < sequence:
                before, next_node = next_node, successor_of(lent, number, next_node)
            move_node(lent, number, node, before)
            cursors[number] = node
        cluster = np.int64(keys[rows[place]["owner"]]["cluster"])
        flags = rows[place]["flags"]
        link_node(lent, node, number, cluster, np.int32(flags & (SEEN - 1)))
        for other in range(rules.spans_us.shape[0] if lent.seen.shape[0] > 0 else 0):
            if flags & (SEEN << other) != 0:
                lent.seen[cluster, other] = max(lent.seen[cluster, other], sequence + 1)
