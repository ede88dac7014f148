"""Kernels of the index over a table's keys: open addressing with linear probing over the bytes of texts.

The number of slots is a power of two, at least twice the number of keys. An empty slot is 0. In a used slot, the lower
bits are a row number plus 1; there are as many as needed to number all slots. The higher bits are taken from the key's
hash, so that most other keys are skipped without reading their bytes. Keys are the bytes (``data``) and offsets
(``borders``) of one Arrow column of texts; there is one offset more than there are keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined, kernel

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
_BYTE, _HALF, _WORD = np.uint64(8), np.uint64(32), 8


@inlined
def hashed(data: NDArray[np.uint8], first: np.int32, end: np.int32) -> np.uint64:
    """Hash the bytes from ``first`` to ``end``, eight at a time. Different bytes may have the same hash."""
    digest = _SEED ^ np.uint64(end - first)
    while first < end:
        word = np.uint64(0)
        last = min(first + _WORD, end)
        for at in range(first, last):
            word = (word << _BYTE) | np.uint64(data[at])
        digest = (digest ^ word) * _PRIME
        digest ^= digest >> _HALF
        first = last
    return digest


@inlined
def is_same(
    data: NDArray[np.uint8],
    first: np.int32,
    other: NDArray[np.uint8],
    begin: np.int32,
    size: np.int32,
) -> bool:
    """Check whether ``size`` bytes are equal in ``data`` from ``first`` on and in ``other`` from ``begin`` on."""
    for at in range(size):  # noqa: SIM110 - numba knows no generators
        if data[first + at] != other[begin + at]:
            return False
    return True


@kernel
def index_keys(data: NDArray[np.uint8], borders: NDArray[np.int32], slots: NDArray[np.uint32]) -> int:
    """Insert all keys into an empty index (``slots``). Stop at the first repeated key, and return its row.

    Return -1 if no key is repeated. ``data`` and ``borders`` are the bytes and offsets of the keys.
    """
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(borders.shape[0] - 1):
        first, end = borders[row], borders[row + 1]
        whole = hashed(data, first, end)
        slot, mark = whole & mask, (whole >> _HALF) & ~mask
        while slots[slot] != np.uint32(0):
            entry = np.uint64(slots[slot])
            other = np.int64(entry & mask) - 1
            is_alike = entry & ~mask == mark and borders[other + 1] - borders[other] == end - first
            if is_alike and is_same(data, first, data, borders[other], end - first):
                return row
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = np.uint32(mark | np.uint64(row + 1))
    return -1


@inlined
def row_of(
    data: NDArray[np.uint8],
    borders: NDArray[np.int32],
    slots: NDArray[np.uint32],
    sought: NDArray[np.uint8],
    first: np.int32,
    end: np.int32,
) -> np.int64:
    """Return the row of the key in ``sought`` from ``first`` to ``end``, or -1 if the table does not have the key."""
    mask, whole = np.uint64(slots.shape[0] - 1), hashed(sought, first, end)
    slot, mark = whole & mask, (whole >> _HALF) & ~mask
    while slots[slot] != np.uint32(0):
        entry = np.uint64(slots[slot])
        row = np.int64(entry & mask) - 1
        is_alike = entry & ~mask == mark and borders[row + 1] - borders[row] == end - first
        if is_alike and is_same(sought, first, data, borders[row], end - first):
            return row
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1)


@inlined
def verified(
    data: NDArray[np.uint8],
    borders: NDArray[np.int32],
    slots: NDArray[np.uint32],
    sought: NDArray[np.uint8],
    places: NDArray[np.int32],
    room: NDArray[np.uint64],
    selected: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> np.uint64:
    """Compare the sought keys at the indices ``selected`` with the keys of their rows in ``rows``.

    If they differ, search the index and correct the row. The returned number has no meaning.
    """
    touched = np.uint64(0)  # loads the keys into the processor's cache
    for at in range(selected.shape[0]):
        room[at] = np.uint64(borders[rows[selected[at]]])
    for at in range(selected.shape[0]):
        touched += np.uint64(data[room[at]])
    for at in range(selected.shape[0]):
        number, begin = selected[at], np.int32(room[at])
        row, first, size = rows[number], places[number], places[number + 1] - places[number]
        if borders[row + 1] - begin != size or not is_same(sought, first, data, begin, size):
            rows[number] = row_of(data, borders, slots, sought, first, places[number + 1])
    return touched


@kernel
def find_keys(
    data: NDArray[np.uint8],
    borders: NDArray[np.int32],
    slots: NDArray[np.uint32],
    sought: NDArray[np.uint8],
    places: NDArray[np.int32],
    room: NDArray[np.uint64],
    selected: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> np.uint64:
    """Find the row of each sought key, and write it to ``rows``. It is -1 if no row has the key.

    ``sought`` and ``places`` are the bytes and offsets of the sought keys. Each step is done for all keys before the
    next step, so that the processor waits for many reads of a large table at once. If only some keys need a step, they
    are listed first, because the processor could not predict the branches. ``room`` and ``selected`` are work space,
    one number per key. The returned number has no meaning.
    """
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(rows.shape[0]):
        room[number] = hashed(sought, places[number], places[number + 1])
    for number in range(rows.shape[0]):
        rows[number] = np.int64(slots[room[number] & mask])
    count = 0
    for number in range(rows.shape[0]):
        entry = np.uint64(rows[number])
        selected[count] = number
        count += (entry != np.uint64(0)) & ((entry & ~mask) != ((room[number] >> _HALF) & ~mask))
    for number in selected[:count]:
        slot, mark, entry = room[number] & mask, (room[number] >> _HALF) & ~mask, np.uint64(rows[number])
        while entry != np.uint64(0) and entry & ~mask != mark:
            slot = (slot + np.uint64(1)) & mask
            entry = np.uint64(slots[slot])
        rows[number] = np.int64(entry)
    count = 0
    for number in range(rows.shape[0]):
        rows[number] = np.int64(np.uint64(rows[number]) & mask) - 1
        selected[count] = number
        count += rows[number] >= 0
    return verified(data, borders, slots, sought, places, room, selected[:count], rows)
