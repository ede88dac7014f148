"""Kernels of the index that answers questions: linking events into partitions, finding, grouping and summing them.

Events are numbered in order of time and are in a ring: event number n is in slot n modulo the room. The record of an
event is its distance to the next older event of its partition, then the codes of its attributes, so that following a
chain costs one cache line for each event. The address of a partition joins the low bits of the codes, and each
attribute owns some bits. Source: the IMP index of the specification of parameterised group-by, section 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel
from streams.kernels.prefetching import prefetch

NIL = -1
NEVER = -(2**62)  # the newest event's number of an empty partition
END = 2**31 - 1  # distance of the oldest event of a chain; farther than any window reaches
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_HIGH = np.uint64(32)


class Layout(NamedTuple):
    """The partitions of a configuration: the newest and oldest event of each, and the address bits of attributes."""

    tails: NDArray[np.int64]  # (2**bits,) number of the newest event of each partition; NEVER: none
    heads: NDArray[np.int64]  # (2**bits,) number of the oldest event, while events move to this layout; otherwise (0,)
    masks: NDArray[np.int64]  # (attributes,) the low bits of a code that belong to the address; 0: not indexed
    shifts: NDArray[np.int64]  # (attributes,) the place of these bits in the address


@inlined
def address_at(rows: NDArray[np.int32], slot: np.int64, lent: Layout) -> np.int64:
    """Return the address (index) of the partition to which the event in ``slot`` belongs, in the given layout."""
    address = np.int64(0)
    for column in range(lent.masks.shape[0]):
        address |= (np.int64(rows[slot, column + 1]) & lent.masks[column]) << lent.shifts[column]
    return address


@kernel
def link_rows(rows: NDArray[np.int32], layout: Layout, first: int, end: int) -> None:
    """Add the events ``first`` up to ``end`` (exclusive), the newest of the ring, to the chains of their partitions."""
    lent = borrowed(layout)
    room = rows.shape[0]
    slot = np.int64(first % room)
    for number in range(first, end):
        address = address_at(rows, slot, lent)
        rows[slot, 0] = min(number - lent.tails[address], END)
        lent.tails[address] = number
        if lent.heads.shape[0] > 0 and lent.heads[address] == NEVER:
            lent.heads[address] = number
        slot = slot + 1 if slot + 1 < room else np.int64(0)


@kernel
def unlink_rows(rows: NDArray[np.int32], layout: Layout, first: int, end: int) -> None:
    """Remove the newest events of the ring, numbers ``first`` up to ``end`` (exclusive), from their partitions."""
    lent = borrowed(layout)
    room = rows.shape[0]
    for number in range(end - 1, first - 1, -1):
        slot = np.int64(number % room)
        lent.tails[address_at(rows, slot, lent)] = number - rows[slot, 0]


@kernel
def move_rows(rows: NDArray[np.int32], old: Layout, new: Layout, first: int, end: int) -> None:
    """Move events from the partitions of the old layout to those of the new layout.

    The moved events are ``first`` up to ``end`` (exclusive), the newest of the old layout. The new layout has only
    newer events, so the moved events become the oldest of their new partitions.
    """
    before, lent = borrowed(old), borrowed(new)
    room = rows.shape[0]
    for number in range(end - 1, first - 1, -1):
        slot = np.int64(number % room)
        before.tails[address_at(rows, slot, before)] = number - rows[slot, 0]
        address = address_at(rows, slot, lent)
        if lent.heads[address] == NEVER:
            lent.tails[address] = number
        else:
            rows[lent.heads[address] % room, 0] = lent.heads[address] - number
        lent.heads[address] = number
        rows[slot, 0] = END


@inlined
def is_match(rows: NDArray[np.int32], slot: np.int64, columns: NDArray[np.int64], codes: NDArray[np.int32]) -> bool:
    """Check whether the attributes ``columns`` (indexes) of the event in ``slot`` have the values ``codes``."""
    is_equal = True
    for place in range(columns.shape[0]):
        is_equal &= rows[slot, columns[place] + 1] == codes[place]
    return is_equal


@kernel
def probe_rows(
    rows: NDArray[np.int32],
    layout: Layout,
    columns: NDArray[np.int64],
    codes: NDArray[np.int32],
    lanes: NDArray[np.int64],
    slots: NDArray[np.int32],
    start: int,
    count: int,
) -> tuple[np.int64, np.int64, np.int64]:
    """Write to ``slots`` the events from ``start`` up in which the attributes ``columns`` (indexes) have the ``codes``.

    The kernel follows the chains of the partitions that can have such events. ``slots`` has ``count`` slots already,
    and room for all events and one more. Return the number of slots, of compared events and of visited partitions.

    Each step of a chain waits for memory, so the kernel follows several chains in turn. Each row of ``lanes`` (lanes,
    2) has the next event of one chain: its number, relative to ``start``, and its slot. The kernel prefetches this
    event, makes one step in every other chain, and only then reads the event. No branch depends on the chain, because
    such branches would often be mispredicted. Instead, each lane is written to the next row, even if its chain has
    ended, and the row is then used again. Unsigned indexes in the inner loop save a check for negative indexes.
    """
    lent, room = borrowed(layout), np.int64(rows.shape[0])
    base, free = np.int64(0), np.int64(lent.tails.shape[0] - 1)
    for place in range(columns.shape[0]):
        column = columns[place]
        base |= (np.int64(codes[place]) & lent.masks[column]) << lent.shifts[column]
        free &= ~(lent.masks[column] << lent.shifts[column])
    is_any, is_many = columns.shape[0] == 0, columns.shape[0] > 1
    first, code = (np.uint64(0), np.int32(0)) if is_any else (np.uint64(columns[0] + 1), codes[0])
    filled, compared, visited = np.uint64(count), np.int64(0), np.int64(0)
    begin, chosen, is_left = start % room, np.int64(0), True
    active, most = np.uint64(0), np.uint64(lanes.shape[0])
    while is_left or active > np.uint64(0):
        while is_left and active < most:
            left = lent.tails[base | chosen] - start
            visited += 1
            chosen = (chosen - free) & free
            is_left = chosen != 0
            slot = begin + left if begin + left < room else begin + left - room
            lanes[active, 0], lanes[active, 1] = left, slot
            prefetch(rows, slot)
            active += np.uint64(left >= 0)
        compared += np.int64(active)
        kept = np.uint64(0)
        for step in range(active):
            lane = np.uint64(step)
            left, slot = lanes[lane, 0], lanes[lane, 1]
            row = np.uint64(slot)
            slots[filled] = slot
            is_found = is_any | (rows[row, first] == code)
            if is_many and is_found:
                is_found = is_match(rows, slot, columns, codes)
            filled += np.uint64(is_found)
            distance = np.int64(rows[row, 0])
            left -= distance
            slot = slot - distance if slot >= distance else slot - distance + room
            lanes[kept, 0], lanes[kept, 1] = left, slot
            prefetch(rows, slot)
            kept += np.uint64(left >= 0)
        active = kept
    return np.int64(filled), compared, visited


@kernel
def scan_rows(
    rows: NDArray[np.int32],
    columns: NDArray[np.int64],
    codes: NDArray[np.int32],
    slots: NDArray[np.int32],
    start: int,
    end: int,
) -> np.int64:
    """Write to ``slots`` the events in which the attributes ``columns`` (indexes) have the ``codes``, in order.

    The events are ``start`` up to ``end`` (exclusive). ``slots`` has room for one slot more than there are events.
    Return the number of slots.
    """
    room, count = np.int64(rows.shape[0]), np.int64(0)
    begin = start % room
    column, code = (columns[0] + 1, codes[0]) if columns.shape[0] > 0 else (np.int64(0), np.int32(0))
    for first, last in ((begin, min(begin + end - start, room)), (np.int64(0), begin + end - start - room)):
        for slot in range(first, last):
            slots[count] = slot
            if columns.shape[0] == 0 or rows[slot, column] == code:
                count += columns.shape[0] < 2 or is_match(rows, np.int64(slot), columns, codes)
    return count


@kernel
def group_rows(
    rows: NDArray[np.int32],
    slots: NDArray[np.int32],
    columns: NDArray[np.int64],
    sizes: NDArray[np.int64],
    table: NDArray[np.int32],
    firsts: NDArray[np.int64],
    groups: NDArray[np.int32],
) -> int:
    """Number the groups of found events in order of first appearance, and write the group of each event to ``groups``.

    Events of a group agree in the attributes ``columns``. ``sizes`` has the number of codes of each column. The caller
    fills ``table`` with ``NIL``. A large enough table has an entry for each combination of codes. Otherwise, it is a
    hash table, whose size is a power of two. ``firsts`` gets the index in ``slots`` of each group's first event. Return
    the number of groups, or ``NIL`` if ``firsts`` is full.
    """
    count, is_direct = 0, True
    combinations = 1.0
    for place in range(sizes.shape[0]):
        combinations *= sizes[place]
    is_direct = combinations <= table.shape[0]
    last = np.uint64(table.shape[0] - 1)
    for place in range(slots.shape[0]):
        slot = slots[place]
        key = np.uint64(0)  # may wrap beyond 2**64 combinations, because groups are compared by their codes
        for column in range(columns.shape[0]):
            key = key * np.uint64(sizes[column]) + np.uint64(rows[slot, columns[column]])
        home = key if is_direct else ((key * _SPREAD) >> _HIGH) & last
        while table[home] != NIL and not is_direct:
            other = slots[firsts[table[home]]]
            is_equal = True
            for column in range(columns.shape[0]):
                is_equal &= rows[slot, columns[column]] == rows[other, columns[column]]
            if is_equal:
                break
            home = (home + np.uint64(1)) & last
        if table[home] == NIL:
            if count == firsts.shape[0]:
                return NIL
            table[home] = count
            firsts[count] = place
            count += 1
        groups[place] = table[home]
    return count


@kernel
def sum_rows(
    values: NDArray[np.float64],
    slots: NDArray[np.int32],
    groups: NDArray[np.int32],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    extremes: NDArray[np.float64],
) -> None:
    """Add the numbers of found events to the totals of their groups. NaN means null and is skipped.

    ``sums`` (groups, 2) has the sum and its rounding error, so that the order of events hardly matters. ``extremes``
    (groups, 2) has the least and the greatest value, infinite at first.
    """
    for place in range(slots.shape[0]):
        value = values[slots[place]]
        if np.isnan(value):
            continue
        group = groups[place]
        counts[group] += 1
        before = sums[group, 0]
        after = before + value
        part = after - before
        sums[group, 0] = after
        sums[group, 1] += (before - (after - part)) + (value - part)
        extremes[group, 0] = min(extremes[group, 0], value)
        extremes[group, 1] = max(extremes[group, 1], value)
