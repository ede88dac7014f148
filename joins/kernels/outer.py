"""The windowed join of more than two inputs, some of which may be absent. It reports the maximal combinations only.

Events of a key join each other while both are in their windows, so the stay of each event is an interval. Intervals
that overlap in pairs have a point in common. Hence a combination is part of a larger one if and only if another input
had an event of the key while all members were stored. This can be decided without storing combinations. A combination
is maximal if, when it is decided, its absent inputs have no event of the key, and each had its last event of the key
(``seen``) before the newest member arrived. Callers have checked the room for results. Combinations to decide are found
among the stored events of a key:

- When an event leaves its window: the combinations with this event.
- When an input closes the key: the combinations without this input, if all of their absent inputs have now closed the
  key.
- When an event arrives: the combinations with this event, if all of their absent inputs had closed the key.

Source: the full disjunction (Galindo-Legaria, "Outerjoins as disjunctions", SIGMOD 1994), restricted to combinations
with all required inputs.
"""

from __future__ import annotations

import numpy as np

from joins.kernels.clusters import (
    add_cluster,
    add_node,
    bit_of,
    close_key,
    enter_dead,
    every_input,
    forget_oldest,
    has_closed,
    hold_place,
    leave_dead,
    link_node,
    note_violation,
    purge_list,
    remove_cluster,
    remove_node,
    take_head,
    touch,
)
from joins.kernels.tables import (
    ABSENTS,
    ALIVE,
    BY_CLOSING,
    BY_WINDOW,
    CLOSED_FOR_GOOD,
    CLOSED_KEYS,
    CLOSING,
    DROPPED,
    DUPLICATES,
    EXPIRED,
    FINISHED,
    IMMEDIATE,
    JOINED,
    LAST_EVENT,
    MOST_COUNTED,
    NIL,
    NOW,
    ON_THE_FLY,
    OPEN_NODES,
    PURGED,
    REGULAR,
    RESULTS,
    SEQUENCE,
    WINDOW_ASSISTED,
    Items,
    JoinState,
    Output,
    Rules,
)
from joins.kernels.unclosed import note_cut, room_for
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, routine

_NONE = np.uint64(0)


@inlined
def live_inputs(lent: JoinState, cluster: np.int64) -> np.uint64:
    """Return the set of the inputs that have stored events of a key, as bits."""
    inputs = np.uint64(0)
    for number in range(lent.lists.shape[1]):
        if lent.lists[cluster, number]["live"] > 0:
            inputs |= bit_of(np.int64(number))
    return inputs


@inlined
def is_over(lent: JoinState, rules: Rules, cluster: np.int64) -> bool:
    """Check whether a key can have no more combinations: a required input has closed it and stores no event of it."""
    closed: np.uint64 = lent.keyed[cluster]["closed"]
    over: bool = closed & rules.required[0] & ~live_inputs(lent, cluster) != _NONE
    return over


@routine
def product_of(lent: JoinState, rules: Rules, cluster: np.int64, number: np.int64) -> np.int64:
    """Return how many result rows must be free before the combinations of a key's stored events are written.

    A combination has one event of every input that stores any. Input ``number`` is not counted, unless it is NIL.
    """
    count = np.int64(1)
    for other in range(lent.lists.shape[1]):
        if other != number and lent.lists[cluster, other]["live"] > 0:
            count = min(count * np.int64(lent.lists[cluster, other]["live"]), np.int64(MOST_COUNTED))
    return np.int64(room_for(lent, rules, cluster, number, count))


@inlined
def member_of(lent: JoinState, cluster: np.int64, number: np.int64, node: np.int64) -> np.int64:
    """Return what a combination contains for input ``number``: the sequence number of the event at ``node``.

    If ``node`` is NIL, return FINISHED if the input has closed the key, and otherwise NIL.
    """
    if node != NIL:
        return np.int64(lent.nodes[node]["sequence"])
    return np.int64(FINISHED if has_closed(lent, cluster, number) else NIL)


@routine
def next_combination(lent: JoinState, out: Output, cluster: np.int64, number: np.int64) -> bool:
    """Move the cursors in ``out`` to the next combination of a key's stored events. Return False after the last one.

    There is one cursor for each input, at an event of the key. The last cursor moves fastest, and the cursor of input
    ``number`` is fixed. After the last combination, the cursors are at the first one again.
    """
    cursors, last = out.cursors, lent.lists.shape[1] - 1
    while last >= 0:
        if last != number and cursors[last] != NIL:
            cursors[last] = lent.nodes[cursors[last]]["of_key"]
            if cursors[last] != NIL:
                return True
            cursors[last] = lent.lists[cluster, last]["head"]
        last -= 1
    return False


@routine
def skip_older(lent: JoinState, out: Output, cluster: np.int64, number: np.int64, since: np.int64) -> bool:
    """Move the cursors to the next combination that has an event with a sequence number of at least ``since``.

    Return False if no further combination has such an event. Input ``number`` is fixed, as in ``next_combination``.
    """
    cursors, last = out.cursors, lent.lists.shape[1] - 1
    while last >= 0:
        if last != number and cursors[last] != NIL:
            if lent.nodes[lent.lists[cluster, last]["tail"]]["sequence"] >= since:
                while lent.nodes[cursors[last]]["sequence"] < since:
                    cursors[last] = lent.nodes[cursors[last]]["of_key"]
                return True
            cursors[last] = lent.lists[cluster, last]["head"]
        last -= 1
    return False


@routine
def write_at(
    lent: JoinState,
    out: Output,
    key: tuple[np.int64, np.int64, np.int64],
    origin: tuple[np.int64, np.int64, np.uint8],
    place: np.int64,
) -> np.int64:
    """Write the combination at the cursors to result row ``place``. Return the sequence number of its newest event.

    ``key`` has the index of the key, and the input and sequence number of the event that is fixed. ``origin`` has the
    time of the combination, the item that leads to it, and the reason.
    """
    (cluster, number, sequence), newest = key, np.int64(NIL)
    for other in range(lent.lists.shape[1]):
        member = sequence
        if other != number:
            member = member_of(lent, cluster, np.int64(other), np.int64(out.cursors[other]))
        out.members[place, other] = member
        newest = max(newest, member)
    out.result_times_us[place] = origin[0]
    out.result_items[place] = origin[1]
    out.result_whys[place] = origin[2]
    return newest


@routine
def cover_combinations(
    lent: JoinState,
    out: Output,
    key: tuple[np.int64, np.int64, np.int64],
    origin: tuple[np.int64, np.int64, np.uint8],
    since: np.int64,
) -> np.int64:
    """Write enough combinations of a key's stored events for each event to be in one. Return the row after the last.

    Only combinations with an event of at least sequence number ``since`` are written, as others are not maximal. Each
    event is combined with the newest events of the other inputs. This suffices, because an event of any maximal
    combination is also in a maximal one of this kind. ``key`` and ``origin`` are as in ``write_at``.
    """
    (cluster, number, _), cursors, place = key, out.cursors, out.filled[0]
    for other in range(lent.lists.shape[1]):
        cursors[other] = lent.lists[cluster, other]["tail"]
    place += write_at(borrowed(lent), borrowed(out), key, origin, place) >= since
    for other in range(lent.lists.shape[1]):
        tail, node = np.int64(cursors[other]), np.int64(lent.lists[cluster, other]["head"])
        if other == number or (tail != NIL and lent.nodes[tail]["flags"] & JOINED != 0):
            node = np.int64(NIL)
        while node != NIL:
            if node != tail and lent.nodes[node]["flags"] & JOINED == 0:
                cursors[other] = node
                place += write_at(borrowed(lent), borrowed(out), key, origin, place) >= since
            lent.nodes[node]["flags"] |= JOINED
            node = np.int64(lent.nodes[node]["of_key"])
        cursors[other] = tail
    return np.int64(place)


@routine
def write_combinations(
    lent: JoinState,
    rules: Rules,
    out: Output,
    cluster: np.int64,
    member: tuple[np.int64, np.int64],
    origin: tuple[np.int64, np.int64, np.uint8],
) -> None:
    """Write the maximal combinations of a key's stored events, those that are part of no larger combination.

    Each has one event of every input that has any. ``member`` is the input and sequence number of an event that all of
    them contain. Without such an event, the input is NIL. ``origin`` has the time of the combinations, the item that
    leads to them, and the reason.
    """
    cursors, place, (number, sequence) = out.cursors, np.int64(out.filled[0]), member
    key, end = (cluster, number, sequence), place + rules.most[0]
    since, is_partial, is_more = np.int64(0), False, True
    for other in range(lent.lists.shape[1]):
        cursors[other] = lent.lists[cluster, other]["head"]
        if other != number and cursors[other] == NIL:
            since, is_partial = max(since, lent.seen[cluster, other]), True
    if rules.covers[0]:
        place, is_more = cover_combinations(borrowed(lent), borrowed(out), key, origin, since), False
    while is_more:
        if write_at(borrowed(lent), borrowed(out), key, origin, place) < since:
            is_more = skip_older(borrowed(lent), borrowed(out), cluster, number, since)
            continue
        if place == end:
            note_cut(borrowed(out), place)
            break
        place += 1
        is_more = next_combination(borrowed(lent), borrowed(out), cluster, number)
    lent.counters[RESULTS] += place - out.filled[0]
    if is_partial:
        lent.counters[ABSENTS] += place - out.filled[0]
    out.filled[0] = place


@routine
def remember(lent: JoinState, rules: Rules, cluster: np.int64) -> None:
    """Remember a key without stored events if any input has closed it, and otherwise remove it.

    Beyond the limit of remembered keys, the oldest ones are removed.
    """
    if lent.keyed[cluster]["closed"] == _NONE:
        remove_cluster(borrowed(lent), cluster)
        return
    if lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD == 0:
        enter_dead(borrowed(lent), cluster)
    forget_oldest(borrowed(lent), borrowed(rules))


@routine
def leave(
    lent: JoinState, rules: Rules, out: Output, number: np.int64, node: np.int64, time_us: np.int64, item: np.int64
) -> None:
    """Remove the oldest event of a key in input ``number``, because it leaves its window.

    First write the combinations with this event that were still waiting for an absent input.
    """
    cluster, next_node = np.int64(lent.nodes[node]["cluster"]), lent.nodes[node]["of_key"]
    if lent.nodes[node]["flags"] & ALIVE == 0:
        remove_node(borrowed(lent), number, node)
        return
    absent = every_input(lent) & ~live_inputs(lent, cluster)
    is_open = absent & ~lent.keyed[cluster]["closed"] != _NONE  # otherwise the last closing reported them
    if is_open and absent & rules.required[0] == _NONE:
        member, why = (number, np.int64(lent.nodes[node]["sequence"])), np.uint8(BY_WINDOW)
        write_combinations(borrowed(lent), borrowed(rules), borrowed(out), cluster, member, (time_us, item, why))
    remove_node(borrowed(lent), number, node)
    lent.counters[EXPIRED] += 1
    lent.counters[OPEN_NODES] -= 1
    if not take_head(lent, cluster, number, np.int64(next_node)):
        return
    lent.seen[cluster, number] = lent.counters[SEQUENCE]
    if is_over(lent, rules, cluster):
        cause = np.uint8(WINDOW_ASSISTED)
        close_key(borrowed(lent), borrowed(rules), borrowed(out), cluster, cause, time_us, item)
    elif lent.keyed[cluster]["filled"] == 0:
        remember(borrowed(lent), borrowed(rules), cluster)


@routine
def join_event(
    lent: JoinState, rules: Rules, out: Output, key: tuple[np.int64, np.int64], is_stored: bool, item: np.int64
) -> bool:
    """Write the combinations of a new event if they are decided now. Return whether they were written.

    They are decided if no later event can extend them, or if the event is not stored (``is_stored`` is false), so that
    it cannot wait. Nothing is written if a required input has no event. ``key`` has the index of the key and the input
    of the event.
    """
    cluster, number = key
    absent = every_input(lent) & ~(live_inputs(lent, cluster) | bit_of(number))
    is_open = absent & ~lent.keyed[cluster]["closed"] != _NONE
    if absent & rules.required[0] != _NONE or (is_open and is_stored):
        return False
    why = np.uint8(LAST_EVENT if absent == _NONE else BY_WINDOW if is_open else BY_CLOSING)
    event, origin = (number, lent.counters[SEQUENCE]), (lent.counters[NOW], item, why)
    write_combinations(borrowed(lent), borrowed(rules), borrowed(out), cluster, event, origin)
    return True


@routine
def take_part(
    lent: JoinState, rules: Rules, out: Output, items: Items, entry: tuple[np.int64, np.uint64], item: np.int64
) -> None:
    """Process an event in a join in which combinations may lack inputs.

    Store the event if a later event can join it, and write the combinations that are decided now. ``entry`` has the
    index of its key, or NIL for a new key, and the key's slot in the hash table.
    """
    counters, number, (cluster, slot) = lent.counters, np.int64(items.inputs[item]), entry
    time_us = counters[NOW]
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, items.keys[item])
        lent.seen[cluster] = 0
    touch(lent, cluster)
    if has_closed(lent, cluster, number):
        note_violation(lent, out, item)
        hold_place(borrowed(lent), borrowed(rules), number, time_us)
        return
    if is_over(lent, rules, cluster):
        counters[DROPPED] += 1
        hold_place(borrowed(lent), borrowed(rules), number, time_us)
        return
    is_useless = lent.keyed[cluster]["closed"] | bit_of(number) == every_input(lent)
    is_stored = not is_useless and rules.counts[number] != 0 and rules.of_key[number] != 0
    is_joined = join_event(borrowed(lent), borrowed(rules), borrowed(out), (cluster, number), is_stored, item)
    if not is_stored:
        counters[ON_THE_FLY] += 1
        lent.seen[cluster, number] = counters[SEQUENCE] + 1
        hold_place(borrowed(lent), borrowed(rules), number, time_us)
        if lent.keyed[cluster]["filled"] == 0:
            remember(borrowed(lent), borrowed(rules), cluster)
        return
    if lent.keyed[cluster]["ends"] & CLOSED_FOR_GOOD != 0:
        leave_dead(borrowed(lent), cluster)
    node = add_node(borrowed(lent), number, time_us, counters[SEQUENCE])
    link_node(borrowed(lent), node, number, cluster, np.int32(JOINED if is_joined else 0))
    if 0 < rules.of_key[number] < lent.lists[cluster, number]["live"]:
        oldest = np.int64(lent.lists[cluster, number]["head"])
        leave(borrowed(lent), borrowed(rules), borrowed(out), number, oldest, time_us, item)


@routine
def close_input(
    lent: JoinState, rules: Rules, out: Output, items: Items, entry: tuple[np.int64, np.uint64], item: np.int64
) -> None:
    """Process the closing of a key by an input, in a join in which combinations may lack inputs.

    ``entry`` is as in ``take_part``.
    """
    counters, number, (cluster, slot) = lent.counters, np.int64(items.inputs[item]), entry
    time_us, all_inputs, why = counters[NOW], every_input(lent), np.uint8(BY_CLOSING)
    if cluster == NIL:
        cluster = add_cluster(borrowed(lent), slot, items.keys[item])
        lent.seen[cluster] = 0
    elif has_closed(lent, cluster, number):
        counters[DUPLICATES] += items.kinds[item] == CLOSING
        return
    touch(lent, cluster)
    counters[CLOSED_KEYS] += lent.keyed[cluster]["closed"] == _NONE
    lent.keyed[cluster]["closed"] |= bit_of(number)
    closed, absent = lent.keyed[cluster]["closed"], all_inputs & ~live_inputs(lent, cluster)
    is_decided = absent & bit_of(number) != _NONE and absent & ~closed == _NONE
    if is_decided and absent != all_inputs and absent & rules.required[0] == _NONE:
        nothing = np.int64(NIL), np.int64(NIL)
        write_combinations(borrowed(lent), borrowed(rules), borrowed(out), cluster, nothing, (time_us, item, why))
    if closed == all_inputs or is_over(lent, rules, cluster):
        cause = np.uint8(REGULAR if closed == all_inputs else IMMEDIATE)
        close_key(borrowed(lent), borrowed(rules), borrowed(out), cluster, cause, time_us, item)
        return
    for other in range(lent.lists.shape[1]):
        if closed | bit_of(np.int64(other)) == all_inputs and lent.lists[cluster, other]["live"] > 0:
            key = cluster, np.int64(other)  # no later event can join this input's events
            lent.seen[cluster, other] = counters[SEQUENCE]
            counters[PURGED] += purge_list(borrowed(lent), borrowed(rules), borrowed(out), key, time_us, item, why)
    if lent.keyed[cluster]["filled"] == 0:
        remember(borrowed(lent), borrowed(rules), cluster)
