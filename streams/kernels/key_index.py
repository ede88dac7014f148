"""Kernels of the index over a table's keys: open addressing with linear probing over the bytes of texts.

A slot holds a row number plus 1; 0 is empty. The number of slots is a power of two, at least twice the number of keys.
Keys are the bytes of one Arrow column of texts: ``borders`` has one offset more than there are keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined, kernel

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
_BYTE, _FOLD, _WORD = np.uint64(8), np.uint64(32), 8


@inlined
def hashed(data: NDArray[np.uint8], first: np.int32, end: np.int32) -> np.uint64:
    """The hash of some bytes, eight at a time; collisions only cost time."""
    found = _SEED ^ np.uint64(end - first)
    while first < end:
        word = np.uint64(0)
        last = min(first + _WORD, end)
        for at in range(first, last):
            word = (word << _BYTE) | np.uint64(data[at])
        found = (found ^ word) * _PRIME
        found ^= found >> _FOLD
        first = last
    return found


@inlined
def is_same(
    data: NDArray[np.uint8],
    first: np.int32,
    other: NDArray[np.uint8],
    begin: np.int32,
    size: np.int32,
) -> bool:
    """Whether two stretches of bytes of one size are equal."""
    for at in range(size):  # noqa: SIM110 - numba knows no generators
        if data[first + at] != other[begin + at]:
            return False
    return True


@kernel
def index_keys(data: NDArray[np.uint8], borders: NDArray[np.int32], slots: NDArray[np.uint32]) -> int:
    """Fill empty slots; returns the first row whose key an earlier row has, or -1."""
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(borders.shape[0] - 1):
        first, end = borders[row], borders[row + 1]
        slot = hashed(data, first, end) & mask
        while slots[slot] != np.uint32(0):
            other = slots[slot] - np.uint32(1)
            begin = borders[other]
            if borders[other + np.uint32(1)] - begin == end - first and is_same(data, first, data, begin, end - first):
                return row
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = np.uint32(row + 1)
    return -1


@kernel
def find_keys(
    data: NDArray[np.uint8],
    borders: NDArray[np.int32],
    slots: NDArray[np.uint32],
    sought: NDArray[np.uint8],
    places: NDArray[np.int32],
    homes: NDArray[np.uint64],
    rows: NDArray[np.int64],
) -> None:
    """The row of each sought key, -1 without one; the sought keys are a column of texts like the table's.

    Each step is done for all keys before the next one, so that the processor waits for many places of a large table at
    once. ``homes`` is room for a number per key.
    """
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(rows.shape[0]):
        homes[number] = hashed(sought, places[number], places[number + 1]) & mask
    for number in range(rows.shape[0]):
        rows[number] = np.int64(slots[homes[number]]) - 1
    for number in range(rows.shape[0]):
        first, size, slot, row = places[number], places[number + 1] - places[number], homes[number], rows[number]
        while row >= 0:
            begin = borders[row]
            if borders[row + 1] - begin == size and is_same(sought, first, data, begin, size):
                break
            slot = (slot + np.uint64(1)) & mask
            row = np.int64(slots[slot]) - 1
        rows[number] = row
