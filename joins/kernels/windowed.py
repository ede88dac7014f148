"""The windowed join of any number of inputs on one key, by windows and by keys that inputs close.

Windows are half-open: an event of time t is outside at t + span. A key is closed for good when the last event of an
input that has closed it expires, so no schedule is kept. The room in the tables and for the results of an item is
checked before anything changes, so a call that stopped can be repeated from the same item. Source: punctuation-aware
window joins (PWJoin and MPWJoin, sections 3.4 and 3.5 of the specification), corrected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joins.kernels.clusters import (
    add_cluster,
    add_node,
    bit_of,
    close_key,
    every_input,
    first_due,
    has_closed,
    has_room,
    hold_place,
    link_node,
    note_violation,
    purge_list,
    remove_cluster,
    remove_node,
    report_absent,
    report_over,
    stored,
    take_head,
    touch,
)
from joins.kernels.outer import close_input, leave, product_of, take_part
from joins.kernels.tables import (
    ALIVE,
    BY_CLOSING,
    BY_WINDOW,
    CLOSED_FOR_GOOD,
    CLOSED_KEYS,
    CLOSING,
    CLUSTERS,
    CLUSTERS_FULL,
    DONE,
    DROPPED,
    DUPLICATES,
    EVENT,
    EXPIRED,
    FREE_NODES,
    FRESH_NODES,
    IMMEDIATE,
    JOINED,
    KNOWN,
    LOOKUPS,
    NIL,
    NODES_FULL,
    NOW,
    ON_THE_FLY,
    OPEN_NODES,
    OUTPUT_FULL,
    PLACE,
    PURGED,
    REGULAR,
    REMINDER,
    SEQUENCE,
    TIME,
    WINDOW_ASSISTED,
    Items,
    JoinState,
    Output,
    Rules,
)
from joins.kernels.unclosed import completed, room_for, take_unclosed, write_results
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import HOME_BITS, find_slot
from streams.kernels.slots import fill_slots as fill_slots  # noqa: PLC0414 - Python code of this package calls it, too

_AHEAD = 32  # items whose table rows are read ahead
_MANY = 1 << 15  # least number of slots at which rows are read ahead; smaller tables are in the cache anyway


@routine
def expire(
    lent: JoinState, rules: Rules, out: Output, number: np.int64, node: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Remove the oldest event of a key in input ``number``, because it leaves its window. Report it if it is unjoined.

    If it was the last one and the input has closed the key, the key is closed for good.
    """
    cluster, flags, sequence = (
        np.int64(lent.nodes[node]["cluster"]),
        lent.nodes[node]["flags"],
        lent.nodes[node]["sequence"],
    )
    next_node = lent.nodes[node]["of_key"]
    remove_node(borrowed(lent), number, node)
    if flags & ALIVE == 0:
        return
    lent.counters[EXPIRED] += 1
    lent.counters[OPEN_NODES] -= 1
    if rules.reports_absent[number] and flags & JOINED == 0:
        report_absent(borrowed(lent), borrowed(out), (number, np.int64(sequence)), time_us, item, np.uint8(BY_WINDOW))
    if not take_head(lent, cluster, number, np.int64(next_node)):
        return
    if has_closed(lent, cluster, number):
        close_key(borrowed(lent), borrowed(rules), borrowed(out), cluster, np.uint8(WINDOW_ASSISTED), time_us, item)
    elif lent.keyed[cluster]["closed"] == np.uint64(0) and lent.keyed[cluster]["filled"] == 0:
        remove_cluster(borrowed(lent), cluster)


@routine
def emit_all(
    lent: JoinState, rules: Rules, out: Output, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Write the combinations of the new event (``write_results``), and mark the events that have joined."""
    for other in range(0 if rules.covers[0] else lent.lists.shape[1]):
        node = np.int64(lent.lists[cluster, other]["head"])
        while rules.reports_absent[other] and not rules.reports_all[0] and other != number and node != NIL:
            lent.nodes[node]["flags"] |= JOINED
            node = np.int64(lent.nodes[node]["of_key"])
    write_results(borrowed(lent), borrowed(rules), borrowed(out), cluster, number, time_us, item)


@routine
def combinations(lent: JoinState, cluster: np.int64, number: np.int64) -> np.int64:
    """Return the number of combinations that a new event of input ``number`` completes.

    0 if any other input has no event.
    """
    if lent.keyed[cluster]["filled"] - (lent.lists[cluster, number]["live"] > 0) != lent.lists.shape[1] - 1:
        return np.int64(0)
    return np.int64(completed(lent, cluster, number))


@routine
def refuse_event(
    lent: JoinState, rules: Rules, out: Output, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Process an event that is not stored, because its input has closed the key (a violation) or the key is over."""
    if has_closed(lent, cluster, number):
        note_violation(lent, out, item)
    else:
        lent.counters[DROPPED] += 1
        if rules.reports_absent[number]:
            event = (number, np.int64(lent.counters[SEQUENCE]))
            report_absent(borrowed(lent), borrowed(out), event, time_us, item, np.uint8(BY_CLOSING))
    hold_place(borrowed(lent), borrowed(rules), number, time_us)


@routine
def take_event(
    lent: JoinState,
    rules: Rules,
    out: Output,
    items: Items,
    entry: tuple[np.int64, np.uint64, np.int64],
    item: np.int64,
) -> None:
    """Process an event: write the combinations that it completes, and store it if a later event can join it.

    ``entry`` has three parts: the index of the key (NIL for a new key), the slot of the key in the hash table, and the
    number of combinations.
    """
    counters, number, time_us = lent.counters, np.int64(items.inputs[item]), lent.counters[NOW]
    cluster, slot, count = entry
    if cluster != NIL:
        touch(lent, cluster)
        if lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD != 0 or has_closed(lent, cluster, number):
            refuse_event(borrowed(lent), borrowed(rules), borrowed(out), cluster, number, time_us, item)
            return
        if count > 0:
            emit_all(borrowed(lent), borrowed(rules), borrowed(out), cluster, number, time_us, item)
    is_useless = cluster != NIL and lent.keyed[cluster]["closed"] | bit_of(number) == every_input(lent)
    if is_useless or rules.counts[number] == 0 or rules.of_key[number] == 0:
        counters[ON_THE_FLY] += 1
        if (count == 0 or rules.reports_all[0]) and rules.reports_absent[number]:
            why = np.uint8(BY_CLOSING if is_useless else BY_WINDOW)
            event = (number, np.int64(counters[SEQUENCE]))
            report_absent(borrowed(lent), borrowed(out), event, time_us, item, why)
        hold_place(borrowed(lent), borrowed(rules), number, time_us)
        return
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, items.keys[item])
    node = add_node(borrowed(lent), number, time_us, counters[SEQUENCE])
    is_joined = count > 0 and not rules.reports_all[0]
    link_node(borrowed(lent), node, number, cluster, np.int32(JOINED if is_joined else 0))
    if 0 < rules.of_key[number] < lent.lists[cluster, number]["live"]:
        oldest = np.int64(lent.lists[cluster, number]["head"])
        expire(borrowed(lent), borrowed(rules), borrowed(out), number, oldest, time_us, item)


@routine
def take_closing(
    lent: JoinState, rules: Rules, out: Output, items: Items, entry: tuple[np.int64, np.uint64], item: np.int64
) -> None:
    """Process the closing of a key by an input. Events that can no longer join are removed.

    ``entry`` has the index of the key, or NIL for a new key, and the key's slot in the hash table.
    """
    counters, number, (cluster, slot) = lent.counters, np.int64(items.inputs[item]), entry
    time_us = counters[NOW]
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, items.keys[item])
    elif has_closed(lent, cluster, number):
        counters[DUPLICATES] += items.kinds[item] == CLOSING
        return
    touch(lent, cluster)
    counters[CLOSED_KEYS] += lent.keyed[cluster]["closed"] == np.uint64(0)
    lent.keyed[cluster]["closed"] |= bit_of(number)
    is_dead = lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD != 0
    if lent.keyed[cluster]["closed"] == every_input(lent):
        close_key(borrowed(lent), borrowed(rules), borrowed(out), cluster, np.uint8(REGULAR), time_us, item)
    elif is_dead:
        report_over(borrowed(lent), borrowed(rules), borrowed(out), cluster, time_us, item)
    elif lent.lists[cluster, number]["live"] == 0:
        close_key(borrowed(lent), borrowed(rules), borrowed(out), cluster, np.uint8(IMMEDIATE), time_us, item)
    else:
        for other in range(lent.lists.shape[1]):
            if lent.keyed[cluster]["closed"] | bit_of(np.int64(other)) == every_input(lent) and not has_closed(
                lent, cluster, np.int64(other)
            ):
                key, why = (cluster, np.int64(other)), np.uint8(BY_CLOSING)
                counters[PURGED] += purge_list(borrowed(lent), borrowed(rules), borrowed(out), key, time_us, item, why)


@inlined
def leave_window(
    lent: JoinState,
    rules: Rules,
    out: Output,
    event: tuple[np.bool_, np.int64, np.int64],
    time_us: np.int64,
    item: np.int64,
) -> None:
    """Remove the oldest event of a key in an input, because it leaves its window.

    ``event`` has three parts: whether combinations may lack inputs, the input of the event, and its node.
    """
    lacks, number, node = event
    if lacks:
        leave(borrowed(lent), borrowed(rules), borrowed(out), number, node, time_us, item)
    else:
        expire(borrowed(lent), borrowed(rules), borrowed(out), number, node, time_us, item)


@inlined
def owed_by(lent: JoinState, rules: Rules, event: tuple[np.bool_, np.int64, np.int64]) -> np.int64:
    """Return an upper bound of the results of an event that leaves its window, for which there must be room.

    ``event`` is as in ``leave_window``. Its node may be NIL.
    """
    lacks, number, node = event
    if node == NIL or lent.nodes[node]["flags"] & ALIVE == 0:
        return np.int64(0)
    cluster = np.int64(lent.nodes[node]["cluster"])
    return product_of(borrowed(lent), borrowed(rules), cluster, number) if lacks else stored(lent, cluster)


@inlined
def advance_time(lent: JoinState, rules: Rules, out: Output, now: np.int64, item: np.int64, lacks: np.bool_) -> bool:
    """Advance time to ``now``, and remove events that leave windows of time until then, in the order of their times.

    Return False if there is no room for results. The call can then be repeated. ``lacks`` says that combinations may
    lack inputs.
    """
    while True:
        due, number = first_due(lent, rules)
        if due > now:
            lent.counters[NOW] = now
            return True
        event = lacks, number, np.int64(lent.sides[number]["first"])
        if not has_room(lent, out, owed_by(lent, rules, event)):
            return False
        leave_window(lent, rules, out, event, due, item)


@inlined
def results_of(
    lent: JoinState, rules: Rules, entry: tuple[np.bool_, np.int64, np.int64], is_event: bool
) -> tuple[np.int64, np.int64]:
    """Return the number of combinations that an item completes, and an upper bound of all results of the item.

    ``entry`` has three parts: whether combinations may lack inputs, the input of the item, and the index of its key or
    NIL.
    """
    (lacks, number, cluster), count, most = entry, np.int64(0), np.int64(2)
    if cluster != NIL and lacks:
        most = 2 * product_of(borrowed(lent), borrowed(rules), cluster, number if is_event else np.int64(NIL))
    elif cluster != NIL and is_event:
        count = combinations(borrowed(lent), cluster, number)
        most = (room_for(lent, rules, cluster, number, count) if count > 0 else np.int64(1)) + 1
    elif cluster != NIL:
        most = max(np.int64(1), stored(lent, cluster)) + 1
    if rules.counts[number] > 0 and lent.sides[number]["size"] >= rules.counts[number]:
        most += owed_by(lent, rules, (lacks, number, np.int64(lent.sides[number]["first"])))
    return count, most


@inlined
def take_item(lent: JoinState, rules: Rules, out: Output, items: Items, item: np.int64, lacks: np.bool_) -> bool:
    """Process an item. Without room for its results, only advance time and return False.

    ``lacks`` says that combinations may lack inputs.
    """
    counters, kind, number = lent.counters, items.kinds[item], np.int64(items.inputs[item])
    if not advance_time(lent, rules, out, max(counters[NOW], items.times[item]), item, lacks):
        return False
    if kind == TIME:
        return True
    cluster, slot = np.int64(NIL), np.uint64(0)
    if kind != PLACE:
        slot = find_slot(lent.slots, items.keys[item])
        cluster = np.int64(lent.slots[slot, 1]) - 1
    count, most = results_of(lent, rules, (lacks, number, cluster), kind == EVENT)
    if not has_room(lent, out, most):
        return False
    counters[LOOKUPS] += kind != PLACE
    if kind == KNOWN and cluster == NIL:
        return True
    take_known(lent, rules, out, items, (cluster, slot, count), item, lacks)
    if kind in (CLOSING, REMINDER, KNOWN):
        return True
    counters[SEQUENCE] += 1
    if rules.counts[number] > 0 and lent.sides[number]["size"] > rules.counts[number]:
        event = lacks, number, np.int64(lent.sides[number]["first"])
        leave_window(lent, rules, out, event, counters[NOW], item)
    return True


@inlined
def take_known(
    lent: JoinState,
    rules: Rules,
    out: Output,
    items: Items,
    entry: tuple[np.int64, np.uint64, np.int64],
    item: np.int64,
    lacks: np.bool_,
) -> None:
    """Process an item other than a time: a closing, an event, or an event that joins nothing.

    ``entry`` is as in ``take_event``. ``lacks`` says that combinations may lack inputs.
    """
    kind, (cluster, slot, _) = items.kinds[item], entry
    if kind in (CLOSING, REMINDER, KNOWN) and lacks:
        close_input(borrowed(lent), borrowed(rules), borrowed(out), borrowed(items), (cluster, slot), item)
    elif kind in (CLOSING, REMINDER, KNOWN):
        take_closing(borrowed(lent), borrowed(rules), borrowed(out), borrowed(items), (cluster, slot), item)
    elif kind == EVENT and lacks:
        take_part(borrowed(lent), borrowed(rules), borrowed(out), borrowed(items), (cluster, slot), item)
    elif kind == EVENT:
        take_event(borrowed(lent), borrowed(rules), borrowed(out), borrowed(items), entry, item)
    else:
        hold_place(borrowed(lent), borrowed(rules), np.int64(items.inputs[item]), lent.counters[NOW])


@routine
def look_ahead(lent: JoinState, items: Items, first: np.int64) -> np.int64:
    """Read the table rows of the next items, so that the processor loads them from memory in parallel.

    The returned value depends on all rows read, because otherwise the compiler would drop the reads.
    """
    last = min(first + _AHEAD, items.times.shape[0])
    mask, digest = np.uint64(lent.slots.shape[0] - 1), np.uint64(0)
    for item in range(first, last):
        digest ^= lent.slots[(items.keys[item] >> HOME_BITS) & mask, 1]
    for item in range(first, last):
        cluster = np.int64(lent.slots[(items.keys[item] >> HOME_BITS) & mask, 1]) - 1
        if cluster >= 0:
            digest ^= lent.keyed[cluster]["closed"] ^ np.uint64(lent.lists[cluster, 0]["head"])
    return np.int64(digest)


@inlined
def take_items(
    lent: JoinState, rules: Rules, out: Output, items: Items, first: np.int64, lacks: np.bool_
) -> tuple[int, int]:
    """Process items from index ``first`` on. Return a status and the index of the first unprocessed item.

    ``lacks`` says that combinations may lack inputs. It is constant in each kernel, so the compiler drops the code for
    the other case.
    """
    for item in range(first, items.times.shape[0]):
        if (item - first) % _AHEAD == 0 and lent.slots.shape[0] >= _MANY:
            out.filled[3] = look_ahead(lent, items, np.int64(item))
        if lent.counters[CLUSTERS] >= lent.keyed.shape[0]:
            return CLUSTERS_FULL, item
        if lent.counters[FREE_NODES] == 0 and lent.counters[FRESH_NODES] >= lent.nodes.shape[0]:
            return NODES_FULL, item
        if not lacks and rules.is_plain[0] and lent.counters[CLOSED_KEYS] == 0 and items.kinds[item] == EVENT:
            is_taken = take_unclosed(lent, rules, out, items, np.int64(item))
        else:
            is_taken = take_item(lent, rules, out, items, np.int64(item), lacks)
        if not is_taken:
            return OUTPUT_FULL, item
    return DONE, items.times.shape[0]


@kernel
def join_batch(rules: Rules, state: JoinState, items: Items, out: Output, first: int) -> tuple[int, int]:
    """Process items from index ``first`` on, for joins whose combinations have an event of every input.

    Return a status (``DONE`` or a full table) and the index of the first unprocessed item.
    """
    return take_items(
        borrowed(state), borrowed(rules), borrowed(out), borrowed(items), np.int64(first), np.bool_(False)
    )


@kernel
def join_outer(rules: Rules, state: JoinState, items: Items, out: Output, first: int) -> tuple[int, int]:
    """Process items as ``join_batch`` does, for joins whose combinations may lack inputs."""
    return take_items(borrowed(state), borrowed(rules), borrowed(out), borrowed(items), np.int64(first), np.bool_(True))


@kernel
def drop_keys(state: JoinState, keys: NDArray[np.uint64]) -> None:
    """Forget known keys with their events. Nothing is reported."""
    lent = borrowed(state)
    for key in keys:
        cluster = np.int64(lent.slots[find_slot(lent.slots, key), 1]) - 1
        for number in range(lent.lists.shape[1]):
            node = np.int64(lent.lists[cluster, number]["head"])
            lent.counters[OPEN_NODES] -= lent.lists[cluster, number]["live"]
            while node != NIL:
                next_node = np.int64(lent.nodes[node]["of_key"])
                lent.nodes[node]["flags"] = 0
                remove_node(lent, np.int64(number), node)
                node = next_node
        remove_cluster(lent, cluster)


@kernel
def note_inputs(state: JoinState, inputs: NDArray[np.int64]) -> None:
    """Write the input of each node to ``inputs``, at the index of the node."""
    lent = borrowed(state)
    for number in range(lent.sides.shape[0]):
        node = np.int64(lent.sides[number]["first"])
        while node != NIL:
            inputs[node] = number
            node = np.int64(lent.nodes[node]["of_input"])


@inlined
def let_leave(
    lent: JoinState, rules: Rules, out: Output, leaving: NDArray[np.int64], first: np.int64, lacks: np.bool_
) -> tuple[int, int]:
    """Remove the stored events in ``leaving``, which are outside of their windows since the windows became smaller.

    ``leaving`` (events, 2) has the node and the input of each event. The older events of a key and input come first. A
    node is skipped if it was removed before, together with its key. Return a status and the index of the first
    unprocessed row of ``leaving``.
    """
    for place in range(first, leaving.shape[0]):
        event = lacks, leaving[place, 1], leaving[place, 0]
        if lent.nodes[event[2]]["flags"] & ALIVE == 0:
            continue
        if not has_room(lent, out, owed_by(lent, rules, event)):
            return OUTPUT_FULL, place
        leave_window(lent, rules, out, event, lent.counters[NOW], np.int64(0))
    return DONE, leaving.shape[0]


@kernel
def expire_nodes(
    rules: Rules, state: JoinState, out: Output, leaving: NDArray[np.int64], first: int
) -> tuple[int, int]:
    """Remove the stored events in ``leaving`` as ``let_leave`` does, for joins whose combinations lack no inputs."""
    return let_leave(borrowed(state), borrowed(rules), borrowed(out), leaving, np.int64(first), np.bool_(False))


@kernel
def leave_nodes(rules: Rules, state: JoinState, out: Output, leaving: NDArray[np.int64], first: int) -> tuple[int, int]:
    """Remove the stored events in ``leaving`` as ``let_leave`` does, for joins whose combinations may lack inputs."""
    return let_leave(borrowed(state), borrowed(rules), borrowed(out), leaving, np.int64(first), np.bool_(True))
