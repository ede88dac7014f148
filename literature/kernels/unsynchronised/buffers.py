"""The join of arrivals with the buffers of the other inputs, and the rules by which buffers forget.

Source: data-driven memory management for stream joins, sections 3.2 and 3.3 of the specification. All inputs share one
table of keys, so an arrival costs one look-up. The kernel checks for room before an item changes anything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from literature.kernels.unsynchronised.disorder import scrambled
from literature.kernels.unsynchronised.heaps import pop_key, push_key
from literature.kernels.unsynchronised.tables import (
    ARRIVAL,
    BY_COUNTS,
    BY_KEYS,
    BY_SIZES,
    CAPPED,
    CLOSING_KEY,
    CLUSTERS,
    CLUSTERS_FULL,
    DEAD,
    DONE,
    DROPS_DEAD,
    EVICTED,
    FOREVER,
    FREE_CLUSTERS,
    FREE_NODES,
    FRESH_CLUSTERS,
    FRESH_NODES,
    HEAP_SIZE,
    IDLE_CLOSINGS,
    IDLE_US,
    LAST_TIME,
    LATE,
    MOST_OF_KEY,
    MOST_RESIDENT,
    MOST_RESULTS,
    NEEDED,
    NEWEST,
    NIL,
    NO_TIME,
    NODES,
    NODES_FULL,
    NOW,
    OLDEST,
    ON_THE_FLY,
    OUTPUT_FULL,
    POLICY,
    PURGED,
    RESIDENT,
    RESIDENT_SUM,
    RESULTS,
    SCRAMBLING,
    TAKEN,
    TRACES,
    BufferState,
    Combined,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import fill_slots as fill_slots  # noqa: PLC0414 - Python code of this package calls it, too
from streams.kernels.slots import find_slot, remove_slot

_NEW = -1


@inlined
def bit_of(number: np.int64) -> np.uint64:
    """The bit of an input."""
    return np.uint64(1) << np.uint64(number)


@inlined
def every_input(lent: BufferState) -> np.uint64:
    """All inputs as bits."""
    return (np.uint64(1) << np.uint64(lent.sides.shape[0])) - np.uint64(1)


@routine
def add_cluster(lent: BufferState, slot: np.uint64, key: np.int64) -> np.int64:
    """Enter an unknown key into its slot, and into the heaps of the inputs that have not closed the key."""
    counters = lent.counters
    if counters[FREE_CLUSTERS]:
        counters[FREE_CLUSTERS] -= 1
        cluster = np.int64(lent.free_clusters[counters[FREE_CLUSTERS]])
    else:
        cluster = np.int64(counters[FRESH_CLUSTERS])
        counters[FRESH_CLUSTERS] += 1
    counters[CLUSTERS] += 1
    lent.slots[slot, 0] = scrambled(key)
    lent.slots[slot, 1] = np.uint64(cluster + 1)
    lent.keyed[cluster]["key"] = key
    lent.keyed[cluster]["live"] = 0
    closed = np.uint64(0)
    for number in range(lent.sides.shape[0]):
        arrivals = lent.lists[cluster, number]
        arrivals["head"] = arrivals["tail"] = NIL
        arrivals["live"] = arrivals["arrived"] = 0
        if key <= lent.sides[number, CLOSING_KEY]:
            closed |= bit_of(np.int64(number))
        else:
            push_key(lent.heaps[number], lent.sides[number, HEAP_SIZE], key, cluster)
            lent.sides[number, HEAP_SIZE] += 1
    lent.keyed[cluster]["closed"] = closed
    return cluster


@routine
def remove_cluster_if_over(lent: BufferState, cluster: np.int64) -> None:
    """Forget a key that every input has closed, if no arrival of the key is resident."""
    if lent.keyed[cluster]["closed"] != every_input(lent) or lent.keyed[cluster]["live"]:
        return
    remove_slot(lent.slots, find_slot(lent.slots, scrambled(lent.keyed[cluster]["key"])))
    lent.free_clusters[lent.counters[FREE_CLUSTERS]] = cluster
    lent.counters[FREE_CLUSTERS] += 1
    lent.counters[CLUSTERS] -= 1


@routine
def add_node(lent: BufferState, cluster: np.int64, number: np.int64, sequence: np.int64) -> None:
    """Store an arrival as the newest of its key and of its input."""
    counters, side, arrivals = lent.counters, lent.sides[number], lent.lists[cluster, number]
    if counters[FREE_NODES]:
        counters[FREE_NODES] -= 1
        node = np.int64(lent.free_nodes[counters[FREE_NODES]])
    else:
        node = np.int64(counters[FRESH_NODES])
        counters[FRESH_NODES] += 1
    counters[NODES] += 1
    record = lent.nodes[node]
    record["sequence"], record["cluster"] = sequence, cluster
    record["of_key"] = record["of_input"] = NIL
    if arrivals["live"]:
        lent.nodes[arrivals["tail"]]["of_key"] = node
    else:
        arrivals["head"] = node
    arrivals["tail"] = node
    arrivals["live"] += 1
    lent.keyed[cluster]["live"] += 1
    if side[RESIDENT]:
        lent.nodes[side[NEWEST]]["of_input"] = node
    else:
        side[OLDEST] = node
    side[NEWEST] = node
    side[RESIDENT] += 1


@routine
def drop_oldest_of_key(lent: BufferState, cluster: np.int64, number: np.int64) -> None:
    """Drop the oldest resident arrival of a key in an input; the caller updates the order of the input."""
    arrivals, counters = lent.lists[cluster, number], lent.counters
    node = arrivals["head"]
    arrivals["head"] = lent.nodes[node]["of_key"]
    arrivals["live"] -= 1
    lent.keyed[cluster]["live"] -= 1
    lent.sides[number, RESIDENT] -= 1
    lent.free_nodes[counters[FREE_NODES]] = node
    counters[FREE_NODES] += 1
    counters[NODES] -= 1


@routine
def purge(lent: BufferState, cluster: np.int64, number: np.int64) -> np.int64:
    """Drop all resident arrivals of a key in an input.

    Returns:
        The number of dropped arrivals.
    """
    dropped = np.int64(lent.lists[cluster, number]["live"])
    while lent.lists[cluster, number]["live"]:
        drop_oldest_of_key(lent, cluster, number)
    return dropped


@routine
def close_cluster(lent: BufferState, rules: NDArray[np.int64], cluster: np.int64, number: np.int64) -> None:
    """Close a key on an input, and purge arrivals by the policy."""
    keyed, inputs = lent.keyed[cluster], lent.sides.shape[0]
    keyed["closed"] |= bit_of(number)
    for other in range(inputs):
        lent.ahead[other, number] -= lent.lists[cluster, other]["arrived"]
    if rules[POLICY] == BY_KEYS:
        for other in range(inputs):
            if keyed["closed"] | bit_of(np.int64(other)) == every_input(lent):
                lent.counters[PURGED] += purge(lent, cluster, np.int64(other))
        if rules[DROPS_DEAD] and lent.lists[cluster, number]["live"] == 0:
            for other in range(inputs):
                lent.counters[DEAD] += purge(lent, cluster, np.int64(other))
    remove_cluster_if_over(lent, cluster)


@routine
def close_up_to(lent: BufferState, rules: NDArray[np.int64], number: np.int64, closing: np.int64) -> bool:
    """Close the keys of an input up to ``closing``; False: they were closed already."""
    side = lent.sides[number]
    if closing <= side[CLOSING_KEY]:
        return False
    side[CLOSING_KEY] = closing
    while side[HEAP_SIZE] and lent.heaps[number, 0]["key"] <= closing:
        cluster = np.int64(lent.heaps[number, 0]["cluster"])
        pop_key(lent.heaps[number], side[HEAP_SIZE])
        side[HEAP_SIZE] -= 1
        close_cluster(lent, rules, cluster, number)
    return True


@routine
def close_idle(lent: BufferState, rules: NDArray[np.int64]) -> None:
    """Close, on idle inputs, the keys that all other inputs have closed, although arrivals may still come."""
    now, inputs = lent.counters[NOW], lent.sides.shape[0]
    lowest = np.int64(FOREVER)
    for number in range(inputs):
        if now - lent.sides[number, LAST_TIME] < rules[IDLE_US]:
            lowest = min(lowest, lent.sides[number, CLOSING_KEY])
    if lowest == FOREVER:
        return
    for number in range(inputs):
        if now - lent.sides[number, LAST_TIME] >= rules[IDLE_US]:
            lent.counters[IDLE_CLOSINGS] += close_up_to(lent, rules, np.int64(number), lowest)


@routine
def combinations(lent: BufferState, cluster: np.int64, number: np.int64) -> np.int64:
    """The number of combinations that an arrival of an input completes."""
    product = np.int64(1)
    for other in range(lent.sides.shape[0]):
        if other != number:
            product *= lent.lists[cluster, other]["live"]
    return product


@routine
def emit(lent: BufferState, output: Combined, cluster: np.int64, item: np.void, results: np.int64) -> None:
    """Write combinations of an arrival with resident ones; members of the last input vary fastest."""
    number, inputs = item["input"], lent.sides.shape[0]
    for other in range(inputs):
        output.cursors[other] = lent.lists[cluster, other]["head"]
    for row in range(output.filled[0], output.filled[0] + results):
        for other in range(inputs):
            sequence = item["sequence"] if other == number else lent.nodes[output.cursors[other]]["sequence"]
            output.members[row, other] = sequence
        output.result_times[row] = item["time"]
        for other in range(inputs - 1, -1, -1):
            if other == number:
                continue
            following = lent.nodes[output.cursors[other]]["of_key"]
            if following != NIL:
                output.cursors[other] = following
                break
            output.cursors[other] = lent.lists[cluster, other]["head"]
    output.filled[0] += results
    lent.counters[RESULTS] += results


@routine
def store(lent: BufferState, rules: NDArray[np.int64], cluster: np.int64, item: np.void) -> None:
    """Store an arrival of a known key, unless no later arrival can join it."""
    number = np.int64(item["input"])
    keyed, arrivals = lent.keyed[cluster], lent.lists[cluster, number]
    arrivals["arrived"] += 1
    lent.sides[number, MOST_OF_KEY] = max(lent.sides[number, MOST_OF_KEY], np.int64(arrivals["arrived"]))
    is_dead = False
    for other in range(lent.sides.shape[0]):
        if keyed["closed"] & bit_of(np.int64(other)):
            is_dead |= other != number and lent.lists[cluster, other]["live"] == 0
        else:
            lent.ahead[number, other] += 1
    if rules[POLICY] == BY_KEYS:
        if keyed["closed"] | bit_of(number) == every_input(lent):
            lent.counters[ON_THE_FLY] += 1
            return
        if rules[DROPS_DEAD] and is_dead:
            lent.counters[DEAD] += 1
            return
    add_node(lent, cluster, number, np.int64(item["sequence"]))


@routine
def arrive(lent: BufferState, rules: NDArray[np.int64], output: Combined, item: np.void) -> np.int64:
    """Join an arrival and store it.

    Returns:
        A status; unless it is DONE, the state is unchanged.
    """
    counters, key, side = lent.counters, item["key"], lent.sides[item["input"]]
    slot = find_slot(lent.slots, scrambled(key))
    cluster = np.int64(lent.slots[slot, 1]) - 1
    possible = np.int64(0) if cluster == _NEW else combinations(lent, cluster, np.int64(item["input"]))
    results = min(possible, rules[MOST_RESULTS])
    counters[NEEDED] = results
    if output.filled[0] + results > output.result_times.shape[0]:
        return np.int64(OUTPUT_FULL)
    if not counters[FREE_NODES] and counters[FRESH_NODES] == lent.nodes.shape[0]:
        return np.int64(NODES_FULL)
    if not counters[FREE_CLUSTERS] and counters[FRESH_CLUSTERS] == lent.keyed.shape[0]:
        return np.int64(CLUSTERS_FULL)
    side[TAKEN] += 1
    if key <= side[CLOSING_KEY]:
        side[LATE] += 1
        output.late[output.filled[1]] = item["sequence"]
        output.filled[1] += 1
    counters[CAPPED] += possible - results
    if results:
        emit(lent, output, cluster, item, results)
    if cluster == _NEW:
        cluster = add_cluster(lent, slot, key)
    store(lent, rules, cluster, item)
    remove_cluster_if_over(lent, cluster)
    return np.int64(DONE)


@inlined
def predicted_slots(lent: BufferState, number: np.int64) -> np.int64:
    """The number of newest arrivals that an input has to keep by current counts (policy P1)."""
    most = np.int64(0)
    for other in range(lent.sides.shape[0]):
        if other != number:
            most = max(most, lent.ahead[number, other])
    return np.int64(max(1, lent.sides[number, SCRAMBLING] + most))


@routine
def evict(lent: BufferState, number: np.int64, size: np.int64) -> None:
    """Drop the oldest arrivals of an input beyond ``size``."""
    side = lent.sides[number]
    while side[RESIDENT] > size:
        node = side[OLDEST]
        side[OLDEST] = lent.nodes[node]["of_input"]
        cluster = np.int64(lent.nodes[node]["cluster"])
        drop_oldest_of_key(lent, cluster, number)
        lent.counters[EVICTED] += 1
        remove_cluster_if_over(lent, cluster)


@routine
def settle(
    lent: BufferState, rules: NDArray[np.int64], sizes: NDArray[np.int64], output: Combined, item: np.int64
) -> None:
    """Bound the sizes of the buffers after an item, and note the sizes."""
    row = item if sizes.shape[0] > 1 else np.int64(0)
    for number in range(lent.sides.shape[0]):
        side = lent.sides[number]
        if rules[POLICY] == BY_COUNTS:
            evict(lent, np.int64(number), predicted_slots(lent, np.int64(number)))
        if rules[POLICY] == BY_SIZES:
            evict(lent, np.int64(number), sizes[row, number])
        side[MOST_RESIDENT] = max(side[MOST_RESIDENT], side[RESIDENT])
        side[RESIDENT_SUM] += side[RESIDENT]
        if rules[TRACES]:
            output.resident[item, number] = side[RESIDENT]
            output.predicted[item, number] = predicted_slots(lent, np.int64(number))


@kernel
def join_arrivals(
    rules: NDArray[np.int64],
    state: BufferState,
    items: NDArray[np.void],
    sizes: NDArray[np.int64],
    output: Combined,
    item: np.int64,
) -> tuple[np.int64, np.int64]:
    """Process items from a place on.

    Args:
        rules: Rules of buffers, by their indices.
        state: Changed in place.
        items: ``ITEM`` records.
        sizes: (items, inputs), or one row for all items: newest arrivals to keep; BY_SIZES only.
        output: Results are appended.
        item: Place of the first item.

    Returns:
        A status, and the place of the next item.
    """
    lent, writing = borrowed(state), borrowed(output)
    while item < items.shape[0]:
        record = items[item]
        side = lent.sides[record["input"]]
        if lent.counters[NOW] == NO_TIME:
            for number in range(lent.sides.shape[0]):
                lent.sides[number, LAST_TIME] = record["time"]
        if record["kind"] == ARRIVAL:
            status = arrive(lent, rules, writing, record)
            if status != DONE:
                return status, item
            side[LAST_TIME] = max(side[LAST_TIME], record["time"])
        lent.counters[NOW] = max(lent.counters[NOW], record["time"])
        side[SCRAMBLING] = record["factor"]
        close_up_to(lent, rules, np.int64(record["input"]), record["closing"])
        if rules[IDLE_US]:
            close_idle(lent, rules)
        settle(lent, rules, sizes, writing, item)
        item += 1
    return np.int64(DONE), item
