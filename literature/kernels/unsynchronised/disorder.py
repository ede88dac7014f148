"""The disorder of each input, measured as its keys arrive, by a stack of records.

Source: data-driven memory management for stream joins, sections 2.1, 2.3 and 3.1 of the specification. The earliest
arrival with a key at least as high as a given key is always a record (a key higher than all before), so a binary search
in the records gives the exact disorder of an arrival.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from literature.kernels.unsynchronised.tables import (
    ARRIVAL,
    ARRIVALS,
    BLOCK_ROWS,
    BLOCKS,
    CLOSED,
    CLOSING,
    COUNTED,
    COUNTS_FULL,
    DONE,
    END_OF_RECORDS,
    EPOCH_BEGINS,
    FACTOR,
    FIRST_RECORD,
    GIVEN,
    HEADROOM,
    HIGHEST_DROPPED,
    IS_EXACT,
    MOST,
    MULTIPLICITY,
    NEVER,
    RECORDS_FULL,
    UNDERFLOWS,
    USED_FACTOR,
    WARM_UP,
    DisorderRules,
    DisorderState,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine
from streams.kernels.slots import fill_slots as fill_slots  # noqa: PLC0414 - Python code of this package calls it, too
from streams.kernels.slots import find_slot

_SPREAD = np.uint64(0x9E3779B1)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_RETAINED_FACTORS = 16
_RETAINED = 1024
_THOUSAND = 1000


@inlined
def scrambled(key: np.int64) -> np.uint64:
    """A key for a hash table: the low half is mixed into the high half, and distinct keys stay distinct."""
    bits = np.uint64(key)
    product = (bits & _LOW) * _SPREAD  # 32 bits each: does not wrap
    return bits ^ (((product ^ (product >> _HALF)) & _LOW) << _HALF)


@inlined
def first_at_least(records: NDArray[np.void], low: np.int64, high: np.int64, key: np.int64) -> np.int64:
    """The first record with a key of at least ``key``; ``high`` if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if records[middle]["key"] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def last_up_to(records: NDArray[np.void], low: np.int64, high: np.int64, position: np.int64) -> np.int64:
    """The last record at or before a position; ``low - 1`` if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if records[middle]["position"] <= position:
            low = middle + 1
        else:
            high = middle
    return low - 1


@routine
def shifted(lent: DisorderState, number: np.int64) -> bool:
    """Move the records of an input to the front of their array; False: most of the array is in use."""
    numbers, records = lent.numbers[number], lent.records[number]
    first, end = numbers[FIRST_RECORD], numbers[END_OF_RECORDS]
    if 2 * first < records.shape[0]:
        return False
    for place in range(first, end):
        records[place - first]["key"] = records[place]["key"]
        records[place - first]["position"] = records[place]["position"]
    numbers[FIRST_RECORD], numbers[END_OF_RECORDS] = 0, end - first
    return True


@routine
def drop_records(lent: DisorderState, rules: DisorderRules, number: np.int64) -> None:
    """Drop records that no arrival within the bound of disorder can need."""
    numbers, records = lent.numbers[number], lent.records[number]
    if rules.numbers[number, IS_EXACT]:
        return
    factor = max(numbers[FACTOR], rules.numbers[number, GIVEN], numbers[USED_FACTOR])
    oldest = numbers[ARRIVALS] - _RETAINED_FACTORS * (factor + 1) - _RETAINED
    while (
        numbers[END_OF_RECORDS] - numbers[FIRST_RECORD] > 1 and records[numbers[FIRST_RECORD] + 1]["position"] <= oldest
    ):
        numbers[HIGHEST_DROPPED] = records[numbers[FIRST_RECORD]]["key"]
        numbers[FIRST_RECORD] += 1


@routine
def used_factor(lent: DisorderState, rules: DisorderRules, number: np.int64) -> np.int64:
    """The scrambling factor in use: the known one, or the largest disorder of the newest blocks with headroom."""
    if rules.numbers[number, GIVEN] >= 0:
        return np.int64(rules.numbers[number, GIVEN])
    largest = np.int64(0)
    for block in range(rules.numbers[number, BLOCKS]):
        largest = max(largest, lent.blocks[number, block])
    with_headroom = (largest * rules.numbers[number, HEADROOM] + _THOUSAND - 1) // _THOUSAND
    return np.int64(max(with_headroom, lent.numbers[number, MULTIPLICITY] - 1))


@routine
def closing_key(lent: DisorderState, rules: DisorderRules, number: np.int64, factor: np.int64) -> np.int64:
    """The highest key of all arrivals but the newest ``factor``: every later arrival is above it (lemma C)."""
    numbers, records = lent.numbers[number], lent.records[number]
    if rules.numbers[number, GIVEN] < 0 and numbers[ARRIVALS] <= rules.numbers[number, WARM_UP]:
        return np.int64(numbers[CLOSED])
    place = last_up_to(records, numbers[FIRST_RECORD], numbers[END_OF_RECORDS], numbers[ARRIVALS] - factor)
    if place >= numbers[FIRST_RECORD]:
        numbers[CLOSED] = max(numbers[CLOSED], records[place]["key"])
    return np.int64(numbers[CLOSED])


@routine
def take(
    lent: DisorderState, rules: DisorderRules, number: np.int64, key: np.int64, place: np.int64, slot: np.uint64
) -> None:
    """Note an arrival; ``place``: its first record at least as high; ``slot``: the count of its key."""
    numbers, records, counts = lent.numbers[number], lent.records[number], lent.counts[number]
    numbers[ARRIVALS] += 1
    position, disorder = numbers[ARRIVALS], np.int64(0)
    if place == numbers[END_OF_RECORDS]:
        records[place]["key"] = key
        records[place]["position"] = position
        numbers[END_OF_RECORDS] += 1
    else:
        disorder = position - records[place]["position"]
        numbers[UNDERFLOWS] += numbers[HIGHEST_DROPPED] != NEVER and key <= numbers[HIGHEST_DROPPED]
    numbers[FACTOR] = max(numbers[FACTOR], disorder)
    block_rows = rules.numbers[number, BLOCK_ROWS]
    block = ((position - 1) // block_rows) % rules.numbers[number, BLOCKS]
    if (position - 1) % block_rows == 0:
        lent.blocks[number, block] = 0
    lent.blocks[number, block] = max(lent.blocks[number, block], disorder)
    if counts[slot, 1] == 0:
        counts[slot, 0] = scrambled(key)
        numbers[COUNTED] += 1
    counts[slot, 1] += np.uint64(1)
    numbers[MULTIPLICITY] = max(numbers[MULTIPLICITY], np.int64(counts[slot, 1]))
    numbers[USED_FACTOR] = used_factor(lent, rules, number)
    drop_records(lent, rules, number)


@kernel
def unscrambled(keys: NDArray[np.uint64], plain_keys: NDArray[np.int64]) -> None:
    """Undo ``scrambled``, which is its own inverse."""
    for place in range(keys.shape[0]):
        plain_keys[place] = np.int64(scrambled(np.int64(keys[place])))


@kernel
def observe(
    rules: DisorderRules, state: DisorderState, items: NDArray[np.void], item: np.int64
) -> tuple[np.int64, np.int64]:
    """Note items from a place on, and write the closing key and the factor of its input into each.

    Returns:
        A status, and the place of the next item. EPOCH_BEGINS: the keys of the next item's input have begun again.
    """
    lent, ruled = borrowed(state), borrowed(rules)
    while item < items.shape[0]:
        number = np.int64(items[item]["input"])
        numbers, key = lent.numbers[number], items[item]["key"]
        if items[item]["kind"] == CLOSING:
            numbers[CLOSED] = max(numbers[CLOSED], items[item]["closing"])
        if items[item]["kind"] == ARRIVAL:
            if numbers[END_OF_RECORDS] == lent.records.shape[1] and not shifted(lent, number):
                return np.int64(RECORDS_FULL), item
            place = first_at_least(lent.records[number], numbers[FIRST_RECORD], numbers[END_OF_RECORDS], key)
            most, is_record = ruled.numbers[number, MOST], place == numbers[END_OF_RECORDS]
            if most >= 0 and not is_record and numbers[ARRIVALS] + 1 - lent.records[number, place]["position"] > most:
                return np.int64(EPOCH_BEGINS), item
            slot = find_slot(lent.counts[number], scrambled(key))
            if lent.counts[number, slot, 1] == 0 and 2 * numbers[COUNTED] >= lent.counts.shape[1]:
                return np.int64(COUNTS_FULL), item
            take(lent, ruled, number, key, place, slot)
            items[item]["closing"] = closing_key(lent, ruled, number, numbers[USED_FACTOR])
        items[item]["factor"] = numbers[USED_FACTOR]
        if items[item]["kind"] == CLOSING:
            items[item]["closing"] = numbers[CLOSED]
        item += 1
    return np.int64(DONE), item
