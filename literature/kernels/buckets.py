"""The memory of a spilling join: hash buckets of two inputs, purge buffers, and counts of resident keys.

Source: PJoin (section 3.2 of the specification of punctuation-aware joins). An input has buckets; events of a bucket
are in a *memory part*, on disk, or in a *purge buffer*, which has events that no later event can join, but that events
of the other input on disk still can. The kernel checks for room before an item changes anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joins.kernels.tables import DONE, EVENT, NIL, NODES_FULL, OUTPUT_FULL, PLACE, TIME
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import fill_slots as fill_slots  # noqa: PLC0414 - Python code of this package calls it, too
from streams.kernels.slots import find_slot, remove_slot

# Further statuses of the kernel: it stopped before an item, or (STATE_FULL) after one.
KEYS_FULL = 4
NOT_AN_EVENT = 5
TIME_DUE = 6
STATE_FULL = 7

# Indices of BucketState.counters.
NOW = 0
SEQUENCE = 1  # number of the next event: the clock of arrivals and flushes
IN_MEMORY = 2  # events in memory parts and purge buffers
FREE_NODES = 3
FRESH_NODES = 4
KEYS = 5  # resident keys
FREE_KEYS = 6
FRESH_KEYS = 7
COMPARISONS = 8  # keys compared while probing
SCANS = 9  # events compared by purges
RESULTS = 10  # pairs found in memory parts
ON_THE_FLY = 11  # events that probed and need not be stored
BUFFERED = 12  # events that went to a purge buffer
PURGED = 13  # stored events that a closed key made useless
VIOLATIONS = 14
NULLS = 15
NEEDED = 16  # greatest number of results of the item before which the kernel stopped
ZEROED = 17  # punctuations whose last counted event left
N_COUNTERS = 18

NODE = np.dtype(
    [
        ("key", np.int64),
        ("hash", np.uint64),
        ("arrived", np.int64),  # its sequence number
        ("time", np.int64),
        ("behind", np.int32),
        ("spare", np.int32),
    ]
)
PART = np.dtype([("first", np.int32), ("last", np.int32), ("count", np.int64)])
MEMORY = 0
BUFFER = 1


class BucketState(NamedTuple):
    """The state in memory that is kept from batch to batch."""

    nodes: NDArray[np.void]  # NODE
    free_nodes: NDArray[np.int32]
    parts: NDArray[np.void]  # (2, inputs, buckets) PART: memory parts, purge buffers
    on_disk: NDArray[np.int64]  # (inputs, buckets) events
    slots: NDArray[np.uint64]  # (slots, 2) hash of a resident key, its number + 1
    resident: NDArray[np.int64]  # (keys, inputs) events in memory and on disk
    owners: NDArray[np.int32]  # (keys, inputs) punctuation that counts the events; NIL: none
    free_keys: NDArray[np.int32]
    counts: NDArray[np.int64]  # (punctuations,) number of events that each counts
    is_tracking: NDArray[np.bool_]  # (1,) whether resident keys are counted at all
    counters: NDArray[np.int64]


class ClosedTable(NamedTuple):
    """The closed keys of both inputs."""

    slots: NDArray[np.uint64]  # (slots, 2) hash of a key, inputs that closed it as bits
    starts: NDArray[np.int64]  # (inputs, most intervals) least keys, ascending
    ends: NDArray[np.int64]  # (inputs, most intervals) greatest keys
    sizes: NDArray[np.int64]  # (inputs,) intervals


class Arriving(NamedTuple):
    """The items of a batch, by time."""

    kinds: NDArray[np.uint8]
    inputs: NDArray[np.uint8]
    keys: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    buckets: NDArray[np.int32]
    times: NDArray[np.int64]

    def until(self, last: int) -> Arriving:
        """The items before a place."""
        return Arriving(
            kinds=self.kinds[:last],
            inputs=self.inputs[:last],
            keys=self.keys[:last],
            hashes=self.hashes[:last],
            buckets=self.buckets[:last],
            times=self.times[:last],
        )


class Pairs(NamedTuple):
    """The results of a batch."""

    members: NDArray[np.int64]  # (results, 2) sequences
    times: NDArray[np.int64]
    items: NDArray[np.int32]
    violations: NDArray[np.int32]
    filled: NDArray[np.int64]  # (2,) results, violations


@routine
def is_closed(closed: ClosedTable, number: np.int64, key: np.int64, hashed: np.uint64) -> bool:
    """Whether an input has closed a key."""
    bits = closed.slots[find_slot(closed.slots, hashed), 1]
    if bits & (np.uint64(1) << np.uint64(number)) != np.uint64(0):
        return True
    low, high = np.int64(0), closed.sizes[number]
    while low < high:
        middle = (low + high) // 2
        if closed.starts[number, middle] <= key:
            low = middle + 1
        else:
            high = middle
    return bool(low > 0 and key <= closed.ends[number, low - 1])


@routine
def count_key(lent: BucketState, number: np.int64, hashed: np.uint64, step: np.int64) -> None:
    """Count an event of a key that arrives (``step`` 1) or leaves (-1); there is room for a key."""
    counters = lent.counters
    if not lent.is_tracking[0]:
        return
    slot = find_slot(lent.slots, hashed)
    if lent.slots[slot, 1] == np.uint64(0):
        if counters[FREE_KEYS] > 0:
            counters[FREE_KEYS] -= 1
            fresh = np.int64(lent.free_keys[counters[FREE_KEYS]])
        else:
            fresh = counters[FRESH_KEYS]
            counters[FRESH_KEYS] += 1
        counters[KEYS] += 1
        lent.slots[slot, 0] = hashed
        lent.slots[slot, 1] = np.uint64(fresh + 1)
        for other in range(2):
            lent.resident[fresh, other] = 0
            lent.owners[fresh, other] = NIL
    place = np.int64(lent.slots[slot, 1]) - 1
    lent.resident[place, number] += step
    owner = lent.owners[place, number]
    if owner != NIL:
        lent.counts[owner] += step
        if lent.counts[owner] == 0:
            counters[ZEROED] += 1
    if lent.resident[place, 0] == 0 and lent.resident[place, 1] == 0:
        remove_slot(borrowed(lent.slots), slot)
        lent.free_keys[counters[FREE_KEYS]] = place
        counters[FREE_KEYS] += 1
        counters[KEYS] -= 1


@routine
def append_node(lent: BucketState, part: np.int64, number: np.int64, bucket: np.int64, node: np.int64) -> None:
    """Append a node to a part."""
    last = lent.parts[part, number, bucket]["last"]
    lent.nodes[node]["behind"] = NIL
    if last == NIL:
        lent.parts[part, number, bucket]["first"] = node
    else:
        lent.nodes[last]["behind"] = node
    lent.parts[part, number, bucket]["last"] = node
    lent.parts[part, number, bucket]["count"] += 1


@routine
def store_event(lent: BucketState, part: np.int64, batch: Arriving, item: np.int64) -> None:
    """Store the arriving event in a part; there is room."""
    counters = lent.counters
    if counters[FREE_NODES] > 0:
        counters[FREE_NODES] -= 1
        node = np.int64(lent.free_nodes[counters[FREE_NODES]])
    else:
        node = counters[FRESH_NODES]
        counters[FRESH_NODES] += 1
    lent.nodes[node]["key"] = batch.keys[item]
    lent.nodes[node]["hash"] = batch.hashes[item]
    lent.nodes[node]["arrived"] = counters[SEQUENCE]
    lent.nodes[node]["time"] = counters[NOW]
    append_node(borrowed(lent), part, np.int64(batch.inputs[item]), np.int64(batch.buckets[item]), node)
    counters[IN_MEMORY] += 1
    count_key(borrowed(lent), np.int64(batch.inputs[item]), batch.hashes[item], np.int64(1))


@inlined
def free_node(lent: BucketState, node: np.int64) -> None:
    """Free a node that is in no part."""
    lent.free_nodes[lent.counters[FREE_NODES]] = node
    lent.counters[FREE_NODES] += 1
    lent.counters[IN_MEMORY] -= 1


@routine
def probe_part(lent: BucketState, into: Pairs, batch: Arriving, item: np.int64) -> None:
    """Join the arriving event with the memory part of the other input; there is room."""
    number, key = np.int64(batch.inputs[item]), batch.keys[item]
    node = np.int64(lent.parts[MEMORY, 1 - number, batch.buckets[item]]["first"])
    while node != NIL:
        lent.counters[COMPARISONS] += 1
        if lent.nodes[node]["key"] == key:
            place = into.filled[0]
            into.members[place, number] = lent.counters[SEQUENCE]
            into.members[place, 1 - number] = lent.nodes[node]["arrived"]
            into.times[place] = lent.counters[NOW]
            into.items[place] = item
            into.filled[0] += 1
            lent.counters[RESULTS] += 1
        node = np.int64(lent.nodes[node]["behind"])


@routine
def take_event(lent: BucketState, closed: ClosedTable, batch: Arriving, into: Pairs, item: np.int64) -> None:
    """Process an arriving event with a key: join and store it; there is room."""
    counters, number = lent.counters, np.int64(batch.inputs[item])
    key, hashed, bucket = batch.keys[item], batch.hashes[item], batch.buckets[item]
    if is_closed(borrowed(closed), number, key, hashed):
        into.violations[into.filled[1]] = item
        into.filled[1] += 1
        counters[VIOLATIONS] += 1
        return
    probe_part(borrowed(lent), borrowed(into), borrowed(batch), item)
    if not is_closed(borrowed(closed), 1 - number, key, hashed):
        store_event(borrowed(lent), np.int64(MEMORY), borrowed(batch), item)
    elif lent.on_disk[1 - number, bucket] > 0:
        counters[BUFFERED] += 1
        store_event(borrowed(lent), np.int64(BUFFER), borrowed(batch), item)
    else:
        counters[ON_THE_FLY] += 1


@routine
def stop_before(lent: BucketState, batch: Arriving, into: Pairs, due: np.int64, item: np.int64) -> int:
    """The reason why an item cannot be processed yet; ``DONE``: it can."""
    counters, kind = lent.counters, batch.kinds[item]
    if counters[FREE_NODES] == 0 and counters[FRESH_NODES] >= lent.nodes.shape[0]:
        return NODES_FULL
    if counters[KEYS] >= lent.resident.shape[0]:
        return KEYS_FULL
    if max(counters[NOW], batch.times[item]) >= due:
        return TIME_DUE
    if kind == EVENT:
        counters[NEEDED] = lent.parts[MEMORY, 1 - np.int64(batch.inputs[item]), batch.buckets[item]]["count"]
        if into.filled[0] + counters[NEEDED] > into.times.shape[0]:
            return OUTPUT_FULL
    elif kind not in (PLACE, TIME):
        return NOT_AN_EVENT
    return DONE


@kernel
def join_events(
    state: BucketState, closed: ClosedTable, items: Arriving, written: Pairs, limits: NDArray[np.int64], first: int
) -> tuple[int, int]:
    """Process events and times from a place on.

    Args:
        state: The state.
        closed: Closed keys of both inputs.
        items: The batch.
        written: Results.
        limits: (2,) number of events in memory at which to stop, and the time at which to stop.
        first: Place of the first item.

    Returns:
        A status, and the place of the next item.
    """
    lent, over, batch, into = borrowed(state), borrowed(closed), borrowed(items), borrowed(written)
    counters = lent.counters
    for item in range(first, batch.times.shape[0]):
        kind = batch.kinds[item]
        status = stop_before(lent, batch, into, limits[1], np.int64(item))
        if status != DONE:
            return status, item
        counters[NOW] = max(counters[NOW], batch.times[item])
        if kind == EVENT:
            take_event(lent, over, batch, into, np.int64(item))
        elif kind == PLACE:
            counters[NULLS] += 1
        if kind != TIME:
            counters[SEQUENCE] += 1
        if counters[IN_MEMORY] >= limits[0]:
            return STATE_FULL, item + 1
    return DONE, batch.times.shape[0]


@kernel
def purge_parts(state: BucketState, closed: ClosedTable, number: int, buckets: NDArray[np.int32]) -> None:
    """Remove events of an input from memory parts, if the other input has closed their keys."""
    lent, over = borrowed(state), borrowed(closed)
    mine, other = np.int64(number), np.int64(1 - number)
    for bucket in buckets:
        node, before = np.int64(lent.parts[MEMORY, mine, bucket]["first"]), np.int64(NIL)
        while node != NIL:
            behind = np.int64(lent.nodes[node]["behind"])
            lent.counters[SCANS] += 1
            if not is_closed(over, other, lent.nodes[node]["key"], lent.nodes[node]["hash"]):
                before, node = node, behind
                continue
            if before == NIL:
                lent.parts[MEMORY, mine, bucket]["first"] = behind
            else:
                lent.nodes[before]["behind"] = behind
            if behind == NIL:
                lent.parts[MEMORY, mine, bucket]["last"] = before
            lent.parts[MEMORY, mine, bucket]["count"] -= 1
            lent.counters[PURGED] += 1
            if lent.on_disk[other, bucket] > 0:
                lent.counters[BUFFERED] += 1
                append_node(lent, np.int64(BUFFER), mine, np.int64(bucket), node)
            else:
                hashed = lent.nodes[node]["hash"]
                free_node(lent, node)
                count_key(lent, mine, hashed, np.int64(-1))
            node = behind


@kernel
def copy_part(state: BucketState, part: int, number: int, bucket: int, rows: NDArray[np.void]) -> None:
    """Copy the events of a part, oldest first, into ``rows`` of the length of the part."""
    lent = borrowed(state)
    node = np.int64(lent.parts[part, number, bucket]["first"])
    for place in range(rows.shape[0]):
        rows[place] = lent.nodes[node]
        node = np.int64(lent.nodes[node]["behind"])


@kernel
def clear_part(state: BucketState, part: int, number: int, bucket: int, is_gone: bool) -> None:
    """Empty a part; its events have left the join (``is_gone``) or are on disk."""
    lent = borrowed(state)
    node = np.int64(lent.parts[part, number, bucket]["first"])
    while node != NIL:
        behind, hashed = np.int64(lent.nodes[node]["behind"]), lent.nodes[node]["hash"]
        free_node(lent, node)
        if is_gone:
            count_key(lent, np.int64(number), hashed, np.int64(-1))
        node = behind
    lent.parts[part, number, bucket]["first"] = NIL
    lent.parts[part, number, bucket]["last"] = NIL
    lent.parts[part, number, bucket]["count"] = 0


@kernel
def put_rows(state: BucketState, number: int, bucket: int, rows: NDArray[np.void]) -> None:
    """Append events that are counted as resident already (copied, or from disk) to a memory part; there is room."""
    lent = borrowed(state)
    counters = lent.counters
    for place in range(rows.shape[0]):
        if counters[FREE_NODES] > 0:
            counters[FREE_NODES] -= 1
            node = np.int64(lent.free_nodes[counters[FREE_NODES]])
        else:
            node = counters[FRESH_NODES]
            counters[FRESH_NODES] += 1
        lent.nodes[node]["key"] = rows[place]["key"]
        lent.nodes[node]["hash"] = rows[place]["hash"]
        lent.nodes[node]["arrived"] = rows[place]["arrived"]
        lent.nodes[node]["time"] = rows[place]["time"]
        append_node(lent, np.int64(MEMORY), np.int64(number), np.int64(bucket), node)
        counters[IN_MEMORY] += 1


@kernel
def drop_resident(state: BucketState, number: int, hashes: NDArray[np.uint64]) -> None:
    """Count events of an input as no longer resident."""
    lent = borrowed(state)
    for hashed in hashes:
        count_key(lent, np.int64(number), hashed, np.int64(-1))


@kernel
def own_keys(state: BucketState, number: int, hashes: NDArray[np.uint64], owner: int) -> np.int64:
    """Let a punctuation of an input count the events of keys that no other one counts; returns their number."""
    lent, total = borrowed(state), np.int64(0)
    for hashed in hashes:
        place = np.int64(lent.slots[find_slot(lent.slots, hashed), 1]) - 1
        if place >= 0 and lent.resident[place, number] > 0 and lent.owners[place, number] == NIL:
            lent.owners[place, number] = owner
            total += lent.resident[place, number]
    return total


@kernel
def has_key(state: BucketState, hashed: np.uint64) -> bool:
    """Whether events of a key are resident."""
    lent = borrowed(state)
    has: bool = lent.slots[find_slot(lent.slots, hashed), 1] != np.uint64(0)
    return has


@kernel
def which_closed(
    closed: ClosedTable, number: int, keys: NDArray[np.int64], hashes: NDArray[np.uint64], flags: NDArray[np.bool_]
) -> None:
    """Flag the keys that an input has closed."""
    over = borrowed(closed)
    for place in range(keys.shape[0]):
        flags[place] = is_closed(over, np.int64(number), keys[place], hashes[place])


@kernel
def close_hashes(slots: NDArray[np.uint64], hashes: NDArray[np.uint64], bit: np.uint64) -> int:
    """Note that an input closed keys; there is room. Returns the number of newly filled slots."""
    filled = 0
    for hashed in hashes:
        slot = find_slot(slots, hashed)
        filled += slots[slot, 1] == np.uint64(0)
        slots[slot, 0] = hashed
        slots[slot, 1] |= bit
    return filled


@kernel
def open_hash(slots: NDArray[np.uint64], hashed: np.uint64) -> bool:
    """Forget a key; returns whether it was present."""
    slot = find_slot(slots, hashed)
    if slots[slot, 1] == np.uint64(0):
        return False
    remove_slot(borrowed(slots), slot)
    return True
