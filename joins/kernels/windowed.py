"""The windowed join of any number of inputs on one key, by windows and by keys that inputs close.

Source: punctuation-aware window joins (PWJoin and MPWJoin, sections 3.4 and 3.5 of the specification), corrected.
Windows are half-open: an event of time t is outside at t + span. A key is closed for good when the last event of an
input that has closed it expires, so no schedule is kept. The room for the results of an item is checked before anything
changes, so a call that stopped can be repeated from the same item.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joins.kernels.clusters import (
    add_cluster,
    add_node,
    bit_of,
    enter_dead,
    first_due,
    has_closed,
    link_node,
    purge_list,
    remove_cluster,
    remove_node,
    report_absent,
    say_over,
    take_head,
    touch,
)
from joins.kernels.tables import (
    ALIVE,
    BY_CLOSING,
    BY_WINDOW,
    CLOSED_FOR_GOOD,
    CLOSED_KEYS,
    CLOSING,
    CLUSTERS,
    CLUSTERS_FULL,
    DEAD,
    DONE,
    DROPPED,
    DUPLICATES,
    EVENT,
    EXPIRED,
    FORGOTTEN,
    FREE_NODES,
    FRESH_NODES,
    IMMEDIATE,
    JOINED,
    LOOKUPS,
    NEEDED,
    NIL,
    NODES_FULL,
    NOW,
    OLDEST_DEAD,
    ON_THE_FLY,
    OPEN_NODES,
    OUTPUT_FULL,
    PLACE,
    PURGED,
    REGULAR,
    REMINDER,
    SEQUENCE,
    TIME,
    VIOLATIONS,
    WINDOW_ASSISTED,
    Found,
    Items,
    JoinState,
    Rules,
)
from joins.kernels.unclosed import completed, room_for, take_unclosed, write_results
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import HOME_BITS, find_slot
from streams.kernels.slots import fill_slots as fill_slots  # noqa: PLC0414 - Python code of this package calls it, too

_AHEAD = 32  # items
_MANY = 1 << 15  # slots; smaller tables are in the cache anyway


@inlined
def has_room(lent: JoinState, found: Found, results: np.int64) -> bool:
    """Whether a number of results, two closed keys and a violation can be written; notes the needed room."""
    lent.counters[NEEDED] = results
    has: bool = (
        found.filled[0] + results <= found.result_times.shape[0]
        and found.filled[1] + 2 <= found.closing_times.shape[0]
        and found.filled[2] < found.violations.shape[0]
    )
    return has


@inlined
def stored(lent: JoinState, cluster: np.int64) -> np.int64:
    """The number of stored events of a key."""
    count = np.int64(0)
    for number in range(lent.lists.shape[1]):
        count += lent.lists[cluster, number]["live"]
    return count


@inlined
def every_input(lent: JoinState) -> np.uint64:
    """All inputs as bits."""
    return (np.uint64(1) << np.uint64(lent.lists.shape[1])) - np.uint64(1)


@routine
def close_key(
    lent: JoinState, rules: Rules, found: Found, cluster: np.int64, cause: np.uint8, time_us: np.int64, item: np.int64
) -> None:
    """Close a key for good and remove its events; it is remembered as long as an input may bring events of it."""
    counters = lent.counters
    why = np.uint8(BY_WINDOW if cause == WINDOW_ASSISTED else BY_CLOSING)
    for number in range(lent.lists.shape[1]):
        counters[PURGED] += purge_list(
            borrowed(lent), borrowed(rules), borrowed(found), (cluster, np.int64(number)), time_us, item, why
        )
    if lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD == 0:
        lent.keyed[cluster]["cause"] = cause
        enter_dead(borrowed(lent), cluster)
    say_over(borrowed(lent), borrowed(rules), borrowed(found), cluster, time_us, item)
    if lent.keyed[cluster]["closed"] == every_input(lent):
        remove_cluster(borrowed(lent), cluster)
        return
    while counters[DEAD] > rules.most_dead[0]:
        remove_cluster(borrowed(lent), counters[OLDEST_DEAD])
        counters[FORGOTTEN] += 1


@routine
def expire(
    lent: JoinState, rules: Rules, found: Found, number: np.int64, node: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Let an event leave its window, the oldest of its key in its input; there is room for the results."""
    cluster, flags, sequence = (
        np.int64(lent.nodes[node]["cluster"]),
        lent.nodes[node]["flags"],
        lent.nodes[node]["sequence"],
    )
    behind = lent.nodes[node]["of_key"]
    remove_node(borrowed(lent), number, node)
    if flags & ALIVE == 0:
        return
    lent.counters[EXPIRED] += 1
    lent.counters[OPEN_NODES] -= 1
    if rules.reports_absent[number] and flags & JOINED == 0:
        report_absent(borrowed(lent), borrowed(found), (number, np.int64(sequence)), time_us, item, np.uint8(BY_WINDOW))
    if not take_head(lent, cluster, number, np.int64(behind)):
        return
    if has_closed(lent, cluster, number):
        close_key(borrowed(lent), borrowed(rules), borrowed(found), cluster, np.uint8(WINDOW_ASSISTED), time_us, item)
    elif lent.keyed[cluster]["closed"] == np.uint64(0) and lent.keyed[cluster]["filled"] == 0:
        remove_cluster(borrowed(lent), cluster)


@inlined
def owed_by_first(lent: JoinState, number: np.int64) -> np.int64:
    """The most results of the expiry of an input's oldest event."""
    node = lent.sides[number]["first"]
    if node == NIL or lent.nodes[node]["flags"] & ALIVE == 0:
        return np.int64(0)
    return stored(lent, np.int64(lent.nodes[node]["cluster"]))


@routine
def advance_time(lent: JoinState, rules: Rules, found: Found, now: np.int64, item: np.int64) -> bool:
    """Let events leave windows of time, in the order of their times; False if there is no room."""
    while True:
        due, who = first_due(lent, rules)
        if due > now:
            lent.counters[NOW] = now
            return True
        if not has_room(lent, found, owed_by_first(lent, who)):
            return False
        expire(borrowed(lent), borrowed(rules), borrowed(found), who, np.int64(lent.sides[who]["first"]), due, item)


@routine
def emit_all(
    lent: JoinState, rules: Rules, found: Found, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Write each combination of the new event, and mark the events that have joined; there is room."""
    for other in range(0 if rules.covers[0] else lent.lists.shape[1]):
        node = np.int64(lent.lists[cluster, other]["head"])
        while rules.reports_absent[other] and not rules.reports_all[0] and other != number and node != NIL:
            lent.nodes[node]["flags"] |= JOINED
            node = np.int64(lent.nodes[node]["of_key"])
    write_results(borrowed(lent), borrowed(rules), borrowed(found), cluster, number, time_us, item)


@routine
def combinations(lent: JoinState, cluster: np.int64, number: np.int64) -> np.int64:
    """The number of combinations that an event of an input completes."""
    if lent.keyed[cluster]["filled"] - (lent.lists[cluster, number]["live"] > 0) != lent.lists.shape[1] - 1:
        return np.int64(0)
    return np.int64(completed(lent, cluster, number))


@routine
def refuse_event(
    lent: JoinState, rules: Rules, found: Found, cluster: np.int64, number: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Reject an event of a key that its input has closed (a violation), or that is closed for good."""
    if has_closed(lent, cluster, number):
        found.violations[found.filled[2]] = item
        found.filled[2] += 1
        lent.counters[VIOLATIONS] += 1
    else:
        lent.counters[DROPPED] += 1
        if rules.reports_absent[number]:
            event = (number, np.int64(lent.counters[SEQUENCE]))
            report_absent(borrowed(lent), borrowed(found), event, time_us, item, np.uint8(BY_CLOSING))
    hold_place(borrowed(lent), borrowed(rules), number, time_us)


@inlined
def hold_place(lent: JoinState, rules: Rules, number: np.int64, time_us: np.int64) -> None:
    """Let an event that is not stored take a place in a window of a number of events."""
    if rules.counts[number] > 0:
        add_node(borrowed(lent), number, time_us, np.int64(NIL))


@routine
def take_event(
    lent: JoinState,
    rules: Rules,
    found: Found,
    items: Items,
    of: tuple[np.int64, np.uint64, np.int64],
    item: np.int64,
) -> None:
    """Take an event in; there is room.

    ``of``: the cluster of its key (NIL: the key is new), its slot, and the number of combinations that it completes.
    """
    counters, number, time_us = lent.counters, np.int64(items.inputs[item]), lent.counters[NOW]
    cluster, slot, count = of
    if cluster != NIL:
        touch(lent, cluster)
        if lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD != 0 or has_closed(lent, cluster, number):
            refuse_event(borrowed(lent), borrowed(rules), borrowed(found), cluster, number, time_us, item)
            return
        if count > 0:
            emit_all(borrowed(lent), borrowed(rules), borrowed(found), cluster, number, time_us, item)
    is_useless = cluster != NIL and lent.keyed[cluster]["closed"] | bit_of(number) == every_input(lent)
    if is_useless or rules.counts[number] == 0 or rules.of_key[number] == 0:
        counters[ON_THE_FLY] += 1
        if (count == 0 or rules.reports_all[0]) and rules.reports_absent[number]:
            why = np.uint8(BY_CLOSING if is_useless else BY_WINDOW)
            event = (number, np.int64(counters[SEQUENCE]))
            report_absent(borrowed(lent), borrowed(found), event, time_us, item, why)
        hold_place(borrowed(lent), borrowed(rules), number, time_us)
        return
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, items.keys[item])
    node = add_node(borrowed(lent), number, time_us, counters[SEQUENCE])
    is_joined = count > 0 and not rules.reports_all[0]
    link_node(borrowed(lent), node, number, cluster, np.int32(JOINED if is_joined else 0))
    if 0 < rules.of_key[number] < lent.lists[cluster, number]["live"]:
        oldest = np.int64(lent.lists[cluster, number]["head"])
        expire(borrowed(lent), borrowed(rules), borrowed(found), number, oldest, time_us, item)


@routine
def take_closing(
    lent: JoinState, rules: Rules, found: Found, items: Items, cluster: np.int64, slot: np.uint64, item: np.int64
) -> None:
    """Close a key by an input (``cluster``: NIL if the key is new, then at ``slot``); there is room."""
    counters, number, time_us = lent.counters, np.int64(items.inputs[item]), lent.counters[NOW]
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
        close_key(borrowed(lent), borrowed(rules), borrowed(found), cluster, np.uint8(REGULAR), time_us, item)
    elif is_dead:
        say_over(borrowed(lent), borrowed(rules), borrowed(found), cluster, time_us, item)
    elif lent.lists[cluster, number]["live"] == 0:
        close_key(borrowed(lent), borrowed(rules), borrowed(found), cluster, np.uint8(IMMEDIATE), time_us, item)
    else:
        for other in range(lent.lists.shape[1]):
            if lent.keyed[cluster]["closed"] | bit_of(np.int64(other)) == every_input(lent) and not has_closed(
                lent, cluster, np.int64(other)
            ):
                of, why = (cluster, np.int64(other)), np.uint8(BY_CLOSING)
                counters[PURGED] += purge_list(borrowed(lent), borrowed(rules), borrowed(found), of, time_us, item, why)


@inlined
def most_results(lent: JoinState, rules: Rules, number: np.int64, own: np.int64) -> np.int64:
    """The most results of an item: its own, and those of the event that it pushes out of its window."""
    owed = max(np.int64(1), own)
    if rules.counts[number] > 0 and lent.sides[number]["size"] >= rules.counts[number]:
        owed += owed_by_first(lent, number)
    return owed + np.int64(1)


@routine
def take_item(lent: JoinState, rules: Rules, found: Found, items: Items, item: np.int64) -> bool:
    """Take an item in; False if there is no room, with nothing changed but the time."""
    kind, number = items.kinds[item], np.int64(items.inputs[item])
    if not advance_time(
        borrowed(lent), borrowed(rules), borrowed(found), max(lent.counters[NOW], items.times[item]), item
    ):
        return False
    if kind == TIME:
        return True
    cluster, slot, own = np.int64(NIL), np.uint64(0), np.int64(0)
    if kind != PLACE:
        slot = find_slot(lent.slots, items.keys[item])
        lent.counters[LOOKUPS] += 1
        cluster = np.int64(lent.slots[slot, 1]) - 1
        if cluster != NIL:
            own = combinations(borrowed(lent), cluster, number) if kind == EVENT else stored(lent, cluster)
    room = own
    if kind == EVENT and own > 0:
        room = room_for(lent, rules, cluster, number, own)
    if not has_room(lent, found, most_results(lent, rules, number, room)):
        lent.counters[LOOKUPS] -= kind != PLACE
        return False
    if kind in (CLOSING, REMINDER):
        take_closing(borrowed(lent), borrowed(rules), borrowed(found), borrowed(items), cluster, slot, item)
        return True
    if kind == EVENT:
        take_event(borrowed(lent), borrowed(rules), borrowed(found), borrowed(items), (cluster, slot, own), item)
    else:
        hold_place(borrowed(lent), borrowed(rules), number, lent.counters[NOW])
    lent.counters[SEQUENCE] += 1
    if rules.counts[number] > 0 and lent.sides[number]["size"] > rules.counts[number]:
        oldest = np.int64(lent.sides[number]["first"])
        expire(borrowed(lent), borrowed(rules), borrowed(found), number, oldest, lent.counters[NOW], item)
    return True


@routine
def look_ahead(lent: JoinState, items: Items, first: np.int64) -> np.int64:
    """Read the table rows of the next items, so that the processor fetches them from memory at the same time.

    The returned value depends on all rows read; else the compiler would drop the reads.
    """
    last = min(first + _AHEAD, items.times.shape[0])
    mask, seen = np.uint64(lent.slots.shape[0] - 1), np.uint64(0)
    for item in range(first, last):
        seen ^= lent.slots[(items.keys[item] >> HOME_BITS) & mask, 1]
    for item in range(first, last):
        cluster = np.int64(lent.slots[(items.keys[item] >> HOME_BITS) & mask, 1]) - 1
        if cluster >= 0:
            seen ^= lent.keyed[cluster]["closed"] ^ np.uint64(lent.lists[cluster, 0]["head"])
    return np.int64(seen)


@kernel
def join_batch(rules: Rules, state: JoinState, items: Items, found: Found, first: int) -> tuple[int, int]:
    """Take items in from a place on; returns a status and the place before which it stopped."""
    lent, law, written, batch = borrowed(state), borrowed(rules), borrowed(found), borrowed(items)
    for item in range(first, batch.times.shape[0]):
        if (item - first) % _AHEAD == 0 and lent.slots.shape[0] >= _MANY:
            written.filled[3] = look_ahead(lent, batch, np.int64(item))
        if lent.counters[CLUSTERS] >= lent.keyed.shape[0]:
            return CLUSTERS_FULL, item
        if lent.counters[FREE_NODES] == 0 and lent.counters[FRESH_NODES] >= lent.nodes.shape[0]:
            return NODES_FULL, item
        if law.is_plain[0] and lent.counters[CLOSED_KEYS] == 0 and batch.kinds[item] == EVENT:
            is_taken = take_unclosed(lent, law, written, batch, np.int64(item))
        else:
            is_taken = take_item(lent, law, written, batch, np.int64(item))
        if not is_taken:
            return OUTPUT_FULL, item
    return DONE, batch.times.shape[0]


@kernel
def drop_keys(state: JoinState, keys: NDArray[np.uint64]) -> None:
    """Forget known keys with their events, without any report."""
    lent = borrowed(state)
    for key in keys:
        cluster = np.int64(lent.slots[find_slot(lent.slots, key), 1]) - 1
        for number in range(lent.lists.shape[1]):
            node = np.int64(lent.lists[cluster, number]["head"])
            lent.counters[OPEN_NODES] -= lent.lists[cluster, number]["live"]
            while node != NIL:
                behind = np.int64(lent.nodes[node]["of_key"])
                lent.nodes[node]["flags"] = 0
                remove_node(lent, np.int64(number), node)
                node = behind
        remove_cluster(lent, cluster)


@kernel
def note_inputs(state: JoinState, inputs: NDArray[np.int64]) -> None:
    """Write the input of each node to ``inputs``, which has one place for each node."""
    lent = borrowed(state)
    for number in range(lent.sides.shape[0]):
        node = np.int64(lent.sides[number]["first"])
        while node != NIL:
            inputs[node] = number
            node = np.int64(lent.nodes[node]["of_input"])


@kernel
def expire_nodes(
    rules: Rules, state: JoinState, found: Found, leaving: NDArray[np.int64], first: int
) -> tuple[int, int]:
    """Let stored events leave windows that have become smaller; of each key and input, older events leave first.

    ``leaving`` is (events, 2): nodes and their inputs; nodes that were removed with their key before are skipped. No
    event is stored meanwhile, so a freed node is not another event. Returns a status and the place before which it
    stopped.
    """
    lent, law, written = borrowed(state), borrowed(rules), borrowed(found)
    for place in range(first, leaving.shape[0]):
        node = leaving[place, 0]
        if lent.nodes[node]["flags"] & ALIVE == 0:
            continue
        if not has_room(lent, written, stored(lent, np.int64(lent.nodes[node]["cluster"]))):
            return OUTPUT_FULL, place
        expire(lent, law, written, leaving[place, 1], node, lent.counters[NOW], np.int64(0))
    return DONE, leaving.shape[0]
