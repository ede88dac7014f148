"""A windowed join while no key is closed: the hash window join, over the tables of the general join.

This join is for inputs without windows or with windows of time, where unjoined events are not reported. Then the order
in which events leave has no effect on the output, and lists have no placeholders. The state afterwards is the same as
after ``take_item``. Source: remark (ii) of section 3.4 of the specification of punctuation-aware joins, by which inputs
without punctuations do not pay for them.
"""

from __future__ import annotations

import numpy as np

from joins.kernels.clusters import add_cluster, add_node, link_node, remove_cluster, touch
from joins.kernels.tables import (
    EXPIRED,
    FREE_NODES,
    JOINED,
    LAST_EVENT,
    LOOKUPS,
    MOST_COUNTED,
    NEEDED,
    NIL,
    NODES,
    NOW,
    OPEN_NODES,
    RESULTS,
    SEQUENCE,
    Items,
    JoinState,
    Output,
    Rules,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import apart, inlined, routine
from streams.kernels.slots import find_slot


@routine
def expire_due(lent: JoinState, number: np.int64, due_us: np.int64) -> None:
    """Remove the events of input ``number`` whose times are at most ``due_us``, because they have left their window."""
    counters, node, freed = lent.counters, np.int64(lent.sides[number]["first"]), np.int64(0)
    while node != NIL and lent.nodes[node]["time"] <= due_us:
        cluster, next_node = np.int64(lent.nodes[node]["cluster"]), lent.nodes[node]["of_key"]
        lent.nodes[node]["flags"] = 0
        lent.free_nodes[counters[FREE_NODES] + freed] = node
        freed += 1
        node = np.int64(lent.nodes[node]["of_input"])
        lent.lists[cluster, number]["head"] = next_node
        lent.lists[cluster, number]["live"] -= 1
        if next_node == NIL:
            lent.lists[cluster, number]["tail"] = NIL
            lent.keyed[cluster]["filled"] -= 1
            if lent.keyed[cluster]["filled"] == 0:
                remove_cluster(borrowed(lent), cluster)
    if freed == 0:
        return
    lent.sides[number]["first"] = node
    lent.sides[number]["size"] -= freed
    if node == NIL:
        lent.sides[number]["last"] = NIL
    else:
        lent.nodes[node]["input_before"] = NIL
    counters[FREE_NODES] += freed
    counters[NODES] -= freed
    counters[OPEN_NODES] -= freed
    counters[EXPIRED] += freed


@inlined
def completed(lent: JoinState, cluster: np.int64, number: np.int64) -> np.int64:
    """Return the number of combinations that a new event of input ``number`` completes, at most ``MOST_COUNTED``."""
    count = np.int64(1)
    for other in range(lent.lists.shape[1]):
        if other != number:
            count = min(count * np.int64(lent.lists[cluster, other]["live"]), np.int64(MOST_COUNTED))
    return count


@inlined
def room_for(lent: JoinState, rules: Rules, cluster: np.int64, number: np.int64, count: np.int64) -> np.int64:
    """Return how many result rows must be free for ``count`` combinations of an event of input ``number``.

    If the event may be of any input, ``number`` is NIL.
    """
    if not rules.covers[0]:
        return np.int64(min(count, rules.most[0]) + 1)
    rows = np.int64(1)
    for other in range(lent.lists.shape[1]):
        if other != number:
            rows += np.int64(lent.lists[cluster, other]["live"])
    return rows


@inlined
def write_result(
    lent: JoinState, out: Output, number: np.int64, time_us: np.int64, item: np.int64, place: np.int64
) -> None:
    """Write one combination to row ``place``: the new event, and from each other input the event at its cursor."""
    for other in range(lent.lists.shape[1]):
        if other == number:
            out.members[place, other] = lent.counters[SEQUENCE]
        else:
            out.members[place, other] = lent.nodes[out.cursors[other]]["sequence"]
    out.result_times_us[place] = time_us
    out.result_items[place] = item
    out.result_whys[place] = LAST_EVENT


@inlined
def note_cut(out: Output, place: np.int64) -> None:
    """Note that the result in the row before ``place`` is the last one of an event, whose further results are cut."""
    out.cut_places[out.filled[4]] = place - 1
    out.filled[4] += 1


@routine
def write_cover(
    lent: JoinState, out: Output, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Write combinations of the new event until each stored event of the key is in at least one of them.

    The first combination has the oldest events. Then each event that has been in no combination is combined with the
    oldest events of the other inputs. An input is skipped if its newest event has already been in a combination of an
    earlier event, because then all of its events have been.
    """
    inputs, cursors, place = lent.lists.shape[1], out.cursors, out.filled[0]
    for other in range(inputs):
        cursors[other] = lent.lists[cluster, other]["head"]
    write_result(borrowed(lent), borrowed(out), number, time_us, item, place)
    place += 1
    for back in range(inputs):
        other = inputs - 1 - back
        head = np.int64(lent.lists[cluster, other]["head"])
        node = head
        if other == number or lent.nodes[lent.lists[cluster, other]["tail"]]["flags"] & JOINED != 0:
            node = np.int64(NIL)
        while node != NIL:
            if node != head and lent.nodes[node]["flags"] & JOINED == 0:
                cursors[other] = node
                write_result(borrowed(lent), borrowed(out), number, time_us, item, place)
                place += 1
            lent.nodes[node]["flags"] |= JOINED
            node = np.int64(lent.nodes[node]["of_key"])
        cursors[other] = head
    lent.counters[RESULTS] += place - out.filled[0]
    out.filled[0] = place


@routine
def write_results(
    lent: JoinState, rules: Rules, out: Output, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Write each combination of the new event with one event of every other input, at most ``rules.most`` of them.

    If ``rules.covers`` is set, only write enough of them for each stored event to be in one.
    """
    if rules.covers[0]:
        write_cover(borrowed(lent), borrowed(out), cluster, number, time_us, item)
        return
    inputs, cursors, place = lent.lists.shape[1], out.cursors, out.filled[0]
    end = place + rules.most[0]
    for other in range(inputs):
        cursors[other] = lent.lists[cluster, other]["head"]
    last = 0
    while last >= 0:
        if place == end:
            note_cut(borrowed(out), place)
            break
        write_result(borrowed(lent), borrowed(out), number, time_us, item, place)
        place += 1
        last = inputs - 1
        while last >= 0:
            if last != number:
                cursors[last] = lent.nodes[cursors[last]]["of_key"]
                if cursors[last] != NIL:
                    break
                cursors[last] = lent.lists[cluster, last]["head"]
            last -= 1
    lent.counters[RESULTS] += place - out.filled[0]
    out.filled[0] = place


@apart
def take_unclosed(lent: JoinState, rules: Rules, out: Output, items: Items, item: np.int64) -> bool:
    """Process an event while no key is closed: write its results and store it. Return whether there was room.

    Without room for the results, only time advances, and the call can be repeated.
    """
    counters, number, key = lent.counters, np.int64(items.inputs[item]), items.keys[item]
    now = max(counters[NOW], items.times[item])
    counters[NOW] = now
    for other in range(rules.spans_us.shape[0]):
        if rules.spans_us[other] > 0:
            expire_due(borrowed(lent), np.int64(other), now - rules.spans_us[other])
    slot = find_slot(lent.slots, key)
    cluster, count = np.int64(lent.slots[slot, 1]) - 1, np.int64(0)
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, key)
    else:
        touch(lent, cluster)
        count = completed(lent, cluster, number)
        if count > 0:
            room = room_for(lent, rules, cluster, number, count)
            if out.filled[0] + room > out.result_times_us.shape[0]:
                counters[NEEDED] = room
                return False
            write_results(borrowed(lent), borrowed(rules), borrowed(out), cluster, number, now, item)
    node = add_node(borrowed(lent), number, now, counters[SEQUENCE])
    link_node(borrowed(lent), node, number, cluster, np.int32(JOINED if count > 0 and rules.covers[0] else 0))
    counters[LOOKUPS] += 1
    counters[SEQUENCE] += 1
    return True
