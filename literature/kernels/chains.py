"""Hash joins by windows alone: the baselines WJoin (two inputs) and MWJoin (more).

Source: the hash window join and the multiway hash window join of the specification of punctuation-aware joins, section
3.6. Each input has a hash table whose chains are in order of time. An event probes the tables of the other inputs, each
with a look-up of its own, and compares its key with every event of the chain; it stops at the first input without a
match. The stored events of an input are a ring, as they leave in order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joins.kernels.tables import DONE, EVENT, NIL, NODES_FULL, OUTPUT_FULL, PLACE, Items
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine

# Indices of ChainState.counters.
NOW = 0
SEQUENCE = 1  # number of the next event
STORED = 2  # events, places not included
RESULTS = 3
LOOKUPS = 4  # of chains: one for each probed input, one for storing
PROBES = 5  # look-ups for probing
COMPARISONS = 6  # of keys, one for each event of a probed chain
MATCHES = 7  # comparisons that found the key
EXPIRED = 8
NEEDED = 9  # results for which the event before which the kernel stopped needs room
N_COUNTERS = 10

_HOME_BITS = np.uint64(32)
STORED_EVENT = np.dtype(
    [
        ("key", np.uint64),
        ("time", np.int64),  # us
        ("sequence", np.int64),
        ("behind", np.int64),  # place in the ring of the next event of the chain
        ("bucket", np.int64),  # NIL: a place in a window, without an event
    ]
)
CHAIN = np.dtype([("first", np.int64), ("last", np.int64)])  # places in the ring, which only grow; NIL: empty
RING = np.dtype([("first", np.int64), ("behind", np.int64)])  # oldest place, and the place that is filled next


class ChainRules(NamedTuple):
    """The declared rules of a join, as arrays by input."""

    spans_us: NDArray[np.int64]  # age at which an event leaves the window; 0: no window of time
    counts: NDArray[np.int64]  # newest events of the input in the window; NIL: no such window
    is_adaptive: NDArray[np.bool_]  # (1,) whether the inputs that matched most rarely are probed first


class ChainState(NamedTuple):
    """The state that is kept from batch to batch."""

    chains: NDArray[np.void]  # (inputs, buckets) CHAIN; the number of buckets is a power of two
    events: NDArray[np.void]  # (inputs, room) STORED_EVENT; place p is at p modulo room, a power of two
    rings: NDArray[np.void]  # (inputs,) RING
    matched: NDArray[np.int64]  # (inputs, room) scratch: places of matches
    found: NDArray[np.int64]  # (inputs,) scratch: the number of matches; NIL: not probed
    rates: NDArray[np.int64]  # (inputs, 2) probes, and probes with a match
    counters: NDArray[np.int64]


class Combined(NamedTuple):
    """The results of a batch."""

    members: NDArray[np.int64]  # (results, inputs) sequences
    times: NDArray[np.int64]
    items: NDArray[np.int32]
    filled: NDArray[np.int64]  # (1,)
    cursors: NDArray[np.int64]  # (inputs,) scratch


@inlined
def drop_first(lent: ChainState, number: np.int64) -> None:
    """Drop the oldest event of an input, which is the first of its chain."""
    place = lent.rings[number]["first"]
    slot = place & np.int64(lent.events.shape[1] - 1)
    lent.rings[number]["first"] = place + 1
    bucket = lent.events[number, slot]["bucket"]
    if bucket == NIL:
        return
    behind = lent.events[number, slot]["behind"]
    lent.chains[number, bucket]["first"] = behind
    if behind == NIL:
        lent.chains[number, bucket]["last"] = NIL
    lent.counters[STORED] -= 1
    lent.counters[EXPIRED] += 1


@routine
def expire_all(lent: ChainState, rules: ChainRules, now: np.int64) -> None:
    """Advance the time, and drop events that leave windows of time."""
    lent.counters[NOW] = now
    room = np.int64(lent.events.shape[1] - 1)
    for number in range(rules.spans_us.shape[0]):
        span = rules.spans_us[number]
        if span <= 0:
            continue
        while (
            lent.rings[number]["first"] < lent.rings[number]["behind"]
            and lent.events[number, lent.rings[number]["first"] & room]["time"] + span <= now
        ):
            drop_first(borrowed(lent), np.int64(number))


@routine
def store_event(lent: ChainState, number: np.int64, key: np.uint64, bucket: np.int64) -> None:
    """Append an event to its chain and its input (``bucket``: NIL for an event without a key); there is room."""
    place = lent.rings[number]["behind"]
    slot = place & np.int64(lent.events.shape[1] - 1)
    lent.rings[number]["behind"] = place + 1
    lent.events[number, slot]["key"] = key
    lent.events[number, slot]["time"] = lent.counters[NOW]
    lent.events[number, slot]["sequence"] = lent.counters[SEQUENCE]
    lent.events[number, slot]["behind"] = NIL
    lent.events[number, slot]["bucket"] = bucket
    if bucket == NIL:
        return
    last = lent.chains[number, bucket]["last"]
    if last == NIL:
        lent.chains[number, bucket]["first"] = place
    else:
        lent.events[number, last & np.int64(lent.events.shape[1] - 1)]["behind"] = place
    lent.chains[number, bucket]["last"] = place
    lent.counters[STORED] += 1
    lent.counters[LOOKUPS] += 1


@routine
def probe_chain(lent: ChainState, number: np.int64, key: np.uint64, bucket: np.int64) -> np.int64:
    """Compare a key with a whole chain of an input, and note the matches; returns the number of comparisons."""
    room, compared, matches = np.int64(lent.events.shape[1] - 1), np.int64(0), np.int64(0)
    place = lent.chains[number, bucket]["first"]
    while place != NIL:
        slot = place & room
        compared += 1
        if lent.events[number, slot]["key"] == key:
            lent.matched[number, matches] = place
            matches += 1
        place = lent.events[number, slot]["behind"]
    lent.found[number] = matches
    return compared


@routine
def next_input(lent: ChainState, rules: ChainRules) -> np.int64:
    """The input to probe next: the first that is left, or the one that matched most rarely; NIL: none is left."""
    best, best_rate = np.int64(NIL), 2.0
    for number in range(lent.found.shape[0]):
        if lent.found[number] != NIL:
            continue
        if not rules.is_adaptive[0]:
            return np.int64(number)
        rate = (lent.rates[number, 1] + 1.0) / (lent.rates[number, 0] + 2.0)
        if rate < best_rate:
            best, best_rate = np.int64(number), rate
    return best


@routine
def probe_all(lent: ChainState, rules: ChainRules, number: np.int64, key: np.uint64, bucket: np.int64) -> np.int64:
    """Probe the other inputs up to the first without a match.

    Returns:
        The number of combinations; the matches are in the scratch arrays.
    """
    lent.found[:] = NIL
    lent.found[number] = 1
    count = np.int64(1)
    while count > 0:
        other = next_input(borrowed(lent), borrowed(rules))
        if other == NIL:
            return count
        lent.counters[COMPARISONS] += probe_chain(borrowed(lent), other, key, bucket)
        lent.counters[LOOKUPS] += 1
        lent.counters[PROBES] += 1
        lent.counters[MATCHES] += lent.found[other]
        lent.rates[other, 0] += 1
        lent.rates[other, 1] += lent.found[other] > 0
        count *= lent.found[other]
    return count


@routine
def emit_matches(lent: ChainState, written: Combined, number: np.int64, item: np.int64) -> None:
    """Write each combination of the arriving event with a match of every other input; there is room."""
    inputs, room, cursors = lent.found.shape[0], np.int64(lent.events.shape[1] - 1), written.cursors
    cursors[:] = 0
    last = 0
    while last >= 0:
        place = written.filled[0]
        for other in range(inputs):
            if other == number:
                written.members[place, other] = lent.counters[SEQUENCE]
            else:
                slot = lent.matched[other, cursors[other]] & room
                written.members[place, other] = lent.events[other, slot]["sequence"]
        written.times[place] = lent.counters[NOW]
        written.items[place] = item
        written.filled[0] += 1
        last = inputs - 1
        while last >= 0:
            if last != number:
                cursors[last] += 1
                if cursors[last] < lent.found[last]:
                    break
                cursors[last] = 0
            last -= 1


@routine
def take_event(
    lent: ChainState, rules: ChainRules, written: Combined, batch: Items, pending: np.int64, item: np.int64
) -> bool:
    """Process an event (``pending``: its combinations if it has probed already, else NIL); False: no room."""
    number, key = np.int64(batch.inputs[item]), batch.keys[item]
    bucket = np.int64((key >> _HOME_BITS) & np.uint64(lent.chains.shape[1] - 1))
    if batch.kinds[item] != EVENT:
        bucket = np.int64(NIL)
    else:
        count = pending if pending != NIL else probe_all(borrowed(lent), borrowed(rules), number, key, bucket)
        if written.filled[0] + count > written.times.shape[0]:
            lent.counters[NEEDED] = count
            return False
        if count > 0:
            emit_matches(borrowed(lent), borrowed(written), number, item)
            lent.counters[RESULTS] += count
    if (bucket != NIL and rules.counts[number] != 0) or rules.counts[number] > 0:
        store_event(borrowed(lent), number, key, bucket)
    lent.counters[SEQUENCE] += 1
    if 0 < rules.counts[number] < lent.rings[number]["behind"] - lent.rings[number]["first"]:
        drop_first(borrowed(lent), number)
    return True


@kernel
def chain_batch(
    rules: ChainRules, state: ChainState, items: Items, written: Combined, first: int, pending: int
) -> tuple[int, int]:
    """Process items from a place on, ignoring closings; returns a status and the place of the next item.

    After ``OUTPUT_FULL`` the call is made again with ``pending``, the combinations of the event that has probed.
    """
    lent, law, into, batch = borrowed(state), borrowed(rules), borrowed(written), borrowed(items)
    known = np.int64(pending)
    for item in range(first, batch.times.shape[0]):
        kind, number = batch.kinds[item], np.int64(batch.inputs[item])
        if known == NIL:
            expire_all(lent, law, max(lent.counters[NOW], batch.times[item]))
        if kind in (EVENT, PLACE):
            if lent.rings[number]["behind"] - lent.rings[number]["first"] >= lent.events.shape[1]:
                return NODES_FULL, item
            if not take_event(lent, law, into, batch, known, np.int64(item)):
                return OUTPUT_FULL, item
        known = np.int64(NIL)
    return DONE, batch.times.shape[0]
