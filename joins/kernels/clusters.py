"""Kernels that insert keys and stored events of a join into lists, and remove them. Callers check the room first."""

from __future__ import annotations

import numpy as np

from joins.kernels.tables import (
    ABSENTS,
    ALIVE,
    BY_CLOSING,
    BY_WINDOW,
    CLOSED_FOR_GOOD,
    CLOSED_KEYS,
    CLOSINGS,
    CLUSTERS,
    DEAD,
    FORGOTTEN,
    FREE_CLUSTERS,
    FREE_NODES,
    FRESH_CLUSTERS,
    FRESH_NODES,
    JOINED,
    NEEDED,
    NEWEST_DEAD,
    NIL,
    NODES,
    OLDEST_DEAD,
    OPEN_NODES,
    PURGED,
    REPORTED_OVER,
    RESULTS,
    SEQUENCE,
    VIOLATIONS,
    WINDOW_ASSISTED,
    JoinState,
    Output,
    Rules,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, routine
from streams.kernels.slots import find_slot, remove_slot

_FOREVER = np.int64(2**62)  # later than any time
_TOUCH_BITS = 8  # a key's last use is stored in units of 2 ** _TOUCH_BITS events


@inlined
def bit_of(number: np.int64) -> np.uint64:
    """Return the bit of an input, in sets of inputs that are stored as bits."""
    return np.uint64(1) << np.uint64(number)


@inlined
def has_closed(lent: JoinState, cluster: np.int64, number: np.int64) -> bool:
    """Check whether the input ``number`` has closed the key at index ``cluster``."""
    closed: np.uint64 = lent.keyed[cluster]["closed"]
    has: bool = closed & bit_of(number) != np.uint64(0)
    return has


@inlined
def every_input(lent: JoinState) -> np.uint64:
    """Return the set of all inputs, as bits."""
    return (np.uint64(1) << np.uint64(lent.lists.shape[1])) - np.uint64(1)


@inlined
def may_lack(lent: JoinState, rules: Rules) -> bool:
    """Check whether the join has optional inputs, which combinations may lack (``joins.kernels.outer``)."""
    may: bool = rules.required[0] != every_input(lent)
    return may


@inlined
def stored(lent: JoinState, cluster: np.int64) -> np.int64:
    """Return the number of stored events of the key at index ``cluster``, over all inputs."""
    count = np.int64(0)
    for number in range(lent.lists.shape[1]):
        count += lent.lists[cluster, number]["live"]
    return count


@inlined
def has_room(lent: JoinState, out: Output, results: np.int64) -> bool:
    """Check whether the output has room for ``results`` more results, two more closed keys and one more violation.

    The counter ``NEEDED`` is set to ``results``, so that the caller can enlarge the output.
    """
    lent.counters[NEEDED] = results
    has: bool = (
        out.filled[0] + results <= out.result_times_us.shape[0]
        and out.filled[1] + 2 <= out.closing_times_us.shape[0]
        and out.filled[2] < out.violations.shape[0]
    )
    return has


@inlined
def touch(lent: JoinState, cluster: np.int64) -> None:
    """Mark the key at index ``cluster`` as used now, because an item of the key is processed."""
    lent.keyed[cluster]["touched"] = np.int32(lent.counters[SEQUENCE] >> _TOUCH_BITS)


@inlined
def first_due(lent: JoinState, rules: Rules) -> tuple[np.int64, np.int64]:
    """Return the earliest time at which an event leaves its window of time, and the input of this event.

    Without such an event, return ``_FOREVER`` and NIL.
    """
    due, due_input = _FOREVER, np.int64(NIL)
    for number in range(rules.spans_us.shape[0]):
        first = lent.sides[number]["first"]
        if rules.spans_us[number] > 0 and first != NIL and lent.nodes[first]["time"] + rules.spans_us[number] < due:
            due, due_input = lent.nodes[first]["time"] + rules.spans_us[number], np.int64(number)
    return due, due_input


@inlined
def take_head(lent: JoinState, cluster: np.int64, number: np.int64, next_node: np.int64) -> bool:
    """Remove the oldest event of a key from the key's list for input ``number``. ``next_node`` becomes the oldest.

    Return whether the list is empty now. The node itself is not freed.
    """
    lent.lists[cluster, number]["head"] = next_node
    lent.lists[cluster, number]["live"] -= 1
    if next_node != NIL:
        return False
    lent.lists[cluster, number]["tail"] = NIL
    lent.keyed[cluster]["filled"] -= 1
    return True


@routine
def add_cluster(lent: JoinState, slot: np.uint64, key: np.uint64) -> np.int64:
    """Add a key without events to the tables and return its index.

    ``slot`` is the free slot for it in the hash table.
    """
    counters = lent.counters
    if counters[FREE_CLUSTERS] > 0:
        counters[FREE_CLUSTERS] -= 1
        cluster = np.int64(lent.free_clusters[counters[FREE_CLUSTERS]])
    else:
        cluster = counters[FRESH_CLUSTERS]
        counters[FRESH_CLUSTERS] += 1
    counters[CLUSTERS] += 1
    lent.slots[slot, 0] = key
    lent.slots[slot, 1] = np.uint64(cluster + 1)
    lent.keyed[cluster]["key"] = key
    lent.keyed[cluster]["closed"] = np.uint64(0)
    lent.keyed[cluster]["ends"] = 0
    lent.keyed[cluster]["filled"] = 0
    touch(lent, cluster)
    for number in range(lent.lists.shape[1]):
        lent.lists[cluster, number]["head"] = NIL
        lent.lists[cluster, number]["tail"] = NIL
        lent.lists[cluster, number]["live"] = 0
    return cluster


@routine
def remove_cluster(lent: JoinState, cluster: np.int64) -> None:
    """Remove a key from the tables. The key has no stored events."""
    counters = lent.counters
    if lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD != 0:
        leave_dead(borrowed(lent), cluster)
    counters[CLOSED_KEYS] -= lent.keyed[cluster]["closed"] != np.uint64(0)
    remove_slot(borrowed(lent.slots), find_slot(lent.slots, lent.keyed[cluster]["key"]))
    lent.free_clusters[counters[FREE_CLUSTERS]] = cluster
    counters[FREE_CLUSTERS] += 1
    counters[CLUSTERS] -= 1


@routine
def enter_dead(lent: JoinState, cluster: np.int64) -> None:
    """Append a key to the list of remembered keys, and set its flag ``CLOSED_FOR_GOOD``."""
    counters = lent.counters
    newest = counters[NEWEST_DEAD]
    lent.keyed[cluster]["ends"] |= CLOSED_FOR_GOOD
    lent.keyed[cluster]["before"] = newest
    lent.keyed[cluster]["behind"] = NIL
    if newest == NIL:
        counters[OLDEST_DEAD] = cluster
    else:
        lent.keyed[newest]["behind"] = cluster
    counters[NEWEST_DEAD] = cluster
    counters[DEAD] += 1


@routine
def leave_dead(lent: JoinState, cluster: np.int64) -> None:
    """Remove a key from the list of remembered keys, and clear its flags."""
    counters = lent.counters
    before, next_cluster = lent.keyed[cluster]["before"], lent.keyed[cluster]["behind"]
    if before == NIL:
        counters[OLDEST_DEAD] = next_cluster
    else:
        lent.keyed[before]["behind"] = next_cluster
    if next_cluster == NIL:
        counters[NEWEST_DEAD] = before
    else:
        lent.keyed[next_cluster]["before"] = before
    lent.keyed[cluster]["ends"] = 0
    counters[DEAD] -= 1


@routine
def add_node(lent: JoinState, number: np.int64, time_us: np.int64, sequence: np.int64) -> np.int64:
    """Append a node for an event to the list of input ``number``, and return the node. It belongs to no key yet.

    ``link_node`` adds it to a key. ``sequence`` is the event's sequence number, or NIL for a placeholder.
    """
    counters = lent.counters
    if counters[FREE_NODES] > 0:
        counters[FREE_NODES] -= 1
        node = np.int64(lent.free_nodes[counters[FREE_NODES]])
    else:
        node = counters[FRESH_NODES]
        counters[FRESH_NODES] += 1
    counters[NODES] += 1
    last = lent.sides[number]["last"]
    lent.nodes[node]["time"] = time_us
    lent.nodes[node]["sequence"] = sequence
    lent.nodes[node]["flags"] = 0
    lent.nodes[node]["cluster"] = NIL
    lent.nodes[node]["of_key"] = NIL
    lent.nodes[node]["of_input"] = NIL
    lent.nodes[node]["input_before"] = last
    if last == NIL:
        lent.sides[number]["first"] = node
    else:
        lent.nodes[last]["of_input"] = node
    lent.sides[number]["last"] = node
    lent.sides[number]["size"] += 1
    return node


@routine
def remove_node(lent: JoinState, number: np.int64, node: np.int64) -> None:
    """Remove a node from its input's list and free the node."""
    counters = lent.counters
    before, next_node = lent.nodes[node]["input_before"], lent.nodes[node]["of_input"]
    if before == NIL:
        lent.sides[number]["first"] = next_node
    else:
        lent.nodes[before]["of_input"] = next_node
    if next_node == NIL:
        lent.sides[number]["last"] = before
    else:
        lent.nodes[next_node]["input_before"] = before
    lent.sides[number]["size"] -= 1
    lent.nodes[node]["flags"] = 0
    lent.free_nodes[counters[FREE_NODES]] = node
    counters[FREE_NODES] += 1
    counters[NODES] -= 1


@routine
def link_node(lent: JoinState, node: np.int64, number: np.int64, cluster: np.int64, flags: np.int32) -> None:
    """Append a node to the list of a key in input ``number``. ``flags`` are the node's flags, without ``ALIVE``."""
    lent.nodes[node]["flags"] = flags | ALIVE
    lent.nodes[node]["cluster"] = cluster
    tail = lent.lists[cluster, number]["tail"]
    if tail == NIL:
        lent.lists[cluster, number]["head"] = node
        lent.keyed[cluster]["filled"] += 1
    else:
        lent.nodes[tail]["of_key"] = node
    lent.lists[cluster, number]["tail"] = node
    lent.lists[cluster, number]["live"] += 1
    lent.counters[OPEN_NODES] += 1


@routine
def report_absent(
    lent: JoinState, out: Output, event: tuple[np.int64, np.int64], time_us: np.int64, item: np.int64, why: np.uint8
) -> None:
    """Write a result that reports an unjoined event, which can no longer join.

    ``event`` is its input and sequence number. ``why`` is the reason of the result, and ``item`` the index of the item
    that led to it.
    """
    place, (number, sequence) = out.filled[0], event
    for other in range(out.members.shape[1]):
        out.members[place, other] = NIL
    out.members[place, number] = sequence
    out.result_times_us[place] = time_us
    out.result_items[place] = item
    out.result_whys[place] = why
    out.filled[0] += 1
    lent.counters[ABSENTS] += 1
    lent.counters[RESULTS] += 1


@routine
def purge_list(
    lent: JoinState,
    rules: Rules,
    out: Output,
    key: tuple[np.int64, np.int64],
    time_us: np.int64,
    item: np.int64,
    why: np.uint8,
) -> np.int64:
    """Remove all events of a key in one input, and return their number.

    Unjoined events are reported if the input reports them. ``key`` is the index of the key, and the input. If the
    window of the input counts events, the nodes remain in the input's list as placeholders.
    """
    cluster, number = key
    node = np.int64(lent.lists[cluster, number]["head"])
    if node == NIL:
        return np.int64(0)
    purged = np.int64(lent.lists[cluster, number]["live"])
    while node != NIL:
        next_node = np.int64(lent.nodes[node]["of_key"])
        if rules.reports_absent[number] and lent.nodes[node]["flags"] & JOINED == 0:
            event = (number, np.int64(lent.nodes[node]["sequence"]))
            report_absent(borrowed(lent), borrowed(out), event, time_us, item, why)
        lent.nodes[node]["flags"] = 0
        lent.nodes[node]["cluster"] = NIL
        if rules.counts[number] < 0:
            remove_node(borrowed(lent), number, node)
        node = next_node
    lent.lists[cluster, number]["head"] = NIL
    lent.lists[cluster, number]["tail"] = NIL
    lent.lists[cluster, number]["live"] = 0
    lent.keyed[cluster]["filled"] -= 1
    lent.counters[OPEN_NODES] -= purged
    return purged


@routine
def report_over(
    lent: JoinState, rules: Rules, out: Output, cluster: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Report that a key is over, if this is not reported yet and the key can have no more results.

    The key is closed for good, and each input that reports unjoined events has closed it.
    """
    if lent.keyed[cluster]["ends"] != CLOSED_FOR_GOOD or rules.reporters[0] & ~lent.keyed[cluster][
        "closed"
    ] != np.uint64(0):
        return
    place = out.filled[1]
    out.closing_keys[place] = lent.keyed[cluster]["key"]
    out.closing_causes[place] = lent.keyed[cluster]["cause"]
    out.closing_times_us[place] = time_us
    out.closing_items[place] = item
    out.closing_places[place] = out.filled[0]
    out.filled[1] += 1
    lent.keyed[cluster]["ends"] |= REPORTED_OVER
    lent.counters[CLOSINGS] += 1


@routine
def close_key(
    lent: JoinState, rules: Rules, out: Output, cluster: np.int64, cause: np.uint8, time_us: np.int64, item: np.int64
) -> None:
    """Close a key for good: remove its events, and report that it is over. ``cause`` is the reason.

    The key is remembered as long as some input has not closed it and may still send events of it.
    """
    why = np.uint8(BY_WINDOW if cause == WINDOW_ASSISTED else BY_CLOSING)
    for number in range(lent.lists.shape[1]):
        key = (cluster, np.int64(number))
        lent.counters[PURGED] += purge_list(borrowed(lent), borrowed(rules), borrowed(out), key, time_us, item, why)
    is_known = lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD != 0
    if not is_known or may_lack(lent, rules):
        lent.keyed[cluster]["cause"] = cause
    if not is_known:
        enter_dead(borrowed(lent), cluster)
    report_over(borrowed(lent), borrowed(rules), borrowed(out), cluster, time_us, item)
    if lent.keyed[cluster]["closed"] == every_input(lent):
        remove_cluster(borrowed(lent), cluster)
    else:
        forget_oldest(borrowed(lent), borrowed(rules))


@routine
def forget_oldest(lent: JoinState, rules: Rules) -> None:
    """Remove the remembered keys that were closed first, until at most ``rules.most_dead`` keys are remembered."""
    while lent.counters[DEAD] > rules.most_dead[0]:
        remove_cluster(borrowed(lent), lent.counters[OLDEST_DEAD])
        lent.counters[FORGOTTEN] += 1


@inlined
def note_violation(lent: JoinState, out: Output, item: np.int64) -> None:
    """Write the index of an item to the violations: it is an event whose own input has closed its key."""
    out.violations[out.filled[2]] = item
    out.filled[2] += 1
    lent.counters[VIOLATIONS] += 1


@inlined
def hold_place(lent: JoinState, rules: Rules, number: np.int64, time_us: np.int64) -> None:
    """Add a placeholder for an event that is not stored, if the window of its input counts events."""
    if rules.counts[number] > 0:
        add_node(borrowed(lent), number, time_us, np.int64(NIL))
