"""An event of a windowed join while no key is closed: the hash window join, over the tables of the general one.

Source: remark (ii) of section 3.4 of the specification of punctuation-aware joins: inputs without punctuations do not
pay for them. It holds for windows of time, or none, where nothing is said of events that joined nothing. Then the
order in which events leave shows nowhere, no list has places, and nothing is written but results. What it leaves
behind is what ``take_item`` leaves.
"""

from __future__ import annotations

import numpy as np

from joins.kernels.clusters import add_cluster, add_node, link_node, remove_cluster, touch
from joins.kernels.tables import (
    EXPIRED,
    FREE_NODES,
    LAST_EVENT,
    LOOKUPS,
    NEEDED,
    NIL,
    NODES,
    NOW,
    OPEN_NODES,
    RESULTS,
    SEQUENCE,
    Found,
    Items,
    JoinState,
    Rules,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import apart, inlined, routine
from streams.kernels.slots import find_slot


@routine
def expire_due(lent: JoinState, number: np.int64, due_us: np.int64) -> None:
    """The events of an input up to a time leave their window."""
    counters, node, gone = lent.counters, np.int64(lent.sides[number]["first"]), np.int64(0)
    while node != NIL and lent.nodes[node]["time"] <= due_us:
        cluster, behind = np.int64(lent.nodes[node]["cluster"]), lent.nodes[node]["of_key"]
        lent.nodes[node]["flags"] = 0
        lent.free_nodes[counters[FREE_NODES] + gone] = node
        gone += 1
        node = np.int64(lent.nodes[node]["of_input"])
        lent.lists[cluster, number]["head"] = behind
        lent.lists[cluster, number]["live"] -= 1
        if behind == NIL:
            lent.lists[cluster, number]["tail"] = NIL
            lent.keyed[cluster]["filled"] -= 1
            if lent.keyed[cluster]["filled"] == 0:
                remove_cluster(borrowed(lent), cluster)
    if gone == 0:
        return
    lent.sides[number]["first"] = node
    lent.sides[number]["size"] -= gone
    if node == NIL:
        lent.sides[number]["last"] = NIL
    else:
        lent.nodes[node]["input_before"] = NIL
    counters[FREE_NODES] += gone
    counters[NODES] -= gone
    counters[OPEN_NODES] -= gone
    counters[EXPIRED] += gone


@inlined
def completed(lent: JoinState, cluster: np.int64, number: np.int64) -> np.int64:
    """The number of combinations that an event of an input completes."""
    count = np.int64(1)
    for other in range(lent.lists.shape[1]):
        if other != number:
            count *= lent.lists[cluster, other]["live"]
    return count


@routine
def write_results(
    lent: JoinState, found: Found, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Write each combination of the event that comes with one event of every other input; there is room."""
    inputs, cursors, place = lent.lists.shape[1], found.cursors, found.filled[0]
    for other in range(inputs):
        cursors[other] = lent.lists[cluster, other]["head"]
    last = 0
    while last >= 0:
        for other in range(inputs):
            if other == number:
                found.members[place, other] = lent.counters[SEQUENCE]
            else:
                found.members[place, other] = lent.nodes[cursors[other]]["sequence"]
        found.result_times[place] = time_us
        found.result_items[place] = item
        found.result_whys[place] = LAST_EVENT
        place += 1
        last = inputs - 1
        while last >= 0:
            if last != number:
                cursors[last] = lent.nodes[cursors[last]]["of_key"]
                if cursors[last] != NIL:
                    break
                cursors[last] = lent.lists[cluster, last]["head"]
            last -= 1
    lent.counters[RESULTS] += place - found.filled[0]
    found.filled[0] = place


@apart
def take_unclosed(lent: JoinState, rules: Rules, found: Found, items: Items, item: np.int64) -> bool:
    """Take an event in; False, with nothing changed but the time, where there is no room for its results."""
    counters, number, key = lent.counters, np.int64(items.inputs[item]), items.keys[item]
    now = max(counters[NOW], items.times[item])
    counters[NOW] = now
    for other in range(rules.spans_us.shape[0]):
        if rules.spans_us[other] > 0:
            expire_due(borrowed(lent), np.int64(other), now - rules.spans_us[other])
    slot = find_slot(lent.slots, key)
    cluster = np.int64(lent.slots[slot, 1]) - 1
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, key)
    else:
        touch(lent, cluster)
        count = completed(lent, cluster, number)
        if found.filled[0] + count > found.result_times.shape[0]:
            counters[NEEDED] = count
            return False
        if count > 0:
            write_results(borrowed(lent), borrowed(found), cluster, number, now, item)
    node = add_node(borrowed(lent), number, now, counters[SEQUENCE])
    link_node(borrowed(lent), node, number, cluster, np.int32(0))
    counters[LOOKUPS] += 1
    counters[SEQUENCE] += 1
    return True
