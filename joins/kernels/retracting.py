"""Kernels that remove retracted events from the tables of a join."""

from __future__ import annotations

import numpy as np

from joins.kernels.clusters import close_key, has_closed, has_room, remove_cluster, remove_node, stored
from joins.kernels.tables import (
    DONE,
    IMMEDIATE,
    JOINED,
    NIL,
    NOW,
    OPEN_NODES,
    OUTPUT_FULL,
    REPORTED_OVER,
    JoinState,
    Output,
    Rules,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel, routine
from streams.kernels.slots import find_slot


@routine
def place_in_list(lent: JoinState, entry: tuple[np.int64, np.int64], sequence: np.int64) -> tuple[np.int64, np.int64]:
    """Return the node of an event, and the node before it in the list of its key and input. NIL means no such node.

    ``entry`` has the index of the key and the input.
    """
    cluster, number = entry
    before = np.int64(NIL)
    node = np.int64(lent.lists[cluster, number]["head"]) if cluster != NIL else np.int64(NIL)
    while node != NIL and lent.nodes[node]["sequence"] != sequence:
        before, node = node, np.int64(lent.nodes[node]["of_key"])
    return node, before


@kernel
def unjoin_event(state: JoinState, key: np.uint64, number: int, sequence: int) -> bool:
    """Mark a stored event as not joined, as if it had been in no result. Return whether the event is stored."""
    lent = borrowed(state)
    entry = np.int64(lent.slots[find_slot(lent.slots, key), 1]) - 1, np.int64(number)
    node, _ = place_in_list(lent, entry, np.int64(sequence))
    if node == NIL:
        return False
    lent.nodes[node]["flags"] &= ~np.int32(JOINED)
    return True


@kernel
def retract_event(rules: Rules, state: JoinState, out: Output, key: np.uint64, number: int, sequence: int) -> int:
    """Remove a stored event of a key, as if it had never arrived.

    Return ``DONE``, or ``OUTPUT_FULL`` without any change. If the window of its input counts events, the node remains
    as a placeholder. If the event was the last one of the key in its input, and this input has closed the key, the key
    is closed for good.
    """
    lent, lent_rules, lent_output = borrowed(state), borrowed(rules), borrowed(out)
    cluster, side = np.int64(lent.slots[find_slot(lent.slots, key), 1]) - 1, np.int64(number)
    node, before = place_in_list(lent, (cluster, side), np.int64(sequence))
    if node == NIL:
        return DONE
    if not has_room(lent, lent_output, stored(lent, cluster)):
        return OUTPUT_FULL
    next_node = lent.nodes[node]["of_key"]
    if before == NIL:
        lent.lists[cluster, side]["head"] = next_node
    else:
        lent.nodes[before]["of_key"] = next_node
    if next_node == NIL:
        lent.lists[cluster, side]["tail"] = before
    lent.lists[cluster, side]["live"] -= 1
    lent.counters[OPEN_NODES] -= 1
    lent.nodes[node]["flags"] = 0
    lent.nodes[node]["cluster"] = NIL
    if lent_rules.counts[side] < 0:
        remove_node(lent, side, node)
    if lent.lists[cluster, side]["live"] == 0:
        lent.keyed[cluster]["filled"] -= 1
        if has_closed(lent, cluster, side):
            close_key(lent, lent_rules, lent_output, cluster, np.uint8(IMMEDIATE), lent.counters[NOW], np.int64(0))
        elif lent.keyed[cluster]["closed"] == np.uint64(0) and lent.keyed[cluster]["filled"] == 0:
            remove_cluster(lent, cluster)
    return DONE


@kernel
def is_key_over(state: JoinState, key: np.uint64) -> bool:
    """Check whether a hashed key has no state, or was reported as over."""
    lent = borrowed(state)
    cluster = np.int64(lent.slots[find_slot(lent.slots, key), 1]) - 1
    return bool(cluster == NIL or lent.keyed[cluster]["ends"] & REPORTED_OVER != 0)
