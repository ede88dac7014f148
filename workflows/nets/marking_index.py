"""Numbers packed markings by a vectorised hash table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workflows.nets.packing import Words

_FREE = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class MarkingIndex:
    """Numbers distinct markings in the order of addition. A packed marking is an array of ``words`` 64-bit numbers."""

    def __init__(self, words: int) -> None:
        self._rows = np.zeros((1 << 10, words), np.uint64)
        self._table = np.full(1 << 12, _FREE, np.int32)
        self._factors = np.random.default_rng(7).integers(1 << 62, size=words, dtype=np.uint64) * np.uint64(2)
        self._factors += np.uint64(1)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Words:
        """All markings in the order of their numbers, as a view that the next addition invalidates."""
        return self._rows[: self._count]

    def add(self, markings: Words) -> NDArray[np.int32]:
        """Return the number of each marking. Markings that are not yet in the index get the next numbers."""
        keys = self._keys(markings)
        numbers = np.full(len(markings), _FREE, np.int32)
        self._make_room(len(markings))
        mask = len(self._table) - 1
        slots = (keys & np.uint64(mask)).astype(np.int64)
        pending = np.arange(len(markings))
        while len(pending):
            here = self._table[slots[pending]]
            claimed = pending[here == _FREE]
            if len(claimed):
                self._claim(claimed, markings, slots)
                here = self._table[slots[pending]]
            is_same = (self._rows[here] == markings[pending]).all(axis=1)
            numbers[pending[is_same]] = here[is_same]
            pending = pending[~is_same]
            slots[pending] = (slots[pending] + 1) & mask
        return numbers

    def _claim(self, claimed: NDArray[np.int64], markings: Words, slots: NDArray[np.int64]) -> None:
        """Add new markings to the index. ``claimed`` has their indices, and ``slots`` the free slot of each marking.

        If several claim one slot, only the first of them is added.
        """
        _, first = np.unique(slots[claimed], return_index=True)
        winners = claimed[np.sort(first)]
        end = self._count + len(winners)
        self._rows[self._count : end] = markings[winners]
        self._table[slots[winners]] = np.arange(self._count, end, dtype=np.int32)
        self._count = end

    def _keys(self, markings: Words) -> NDArray[np.uint64]:
        mixed = np.zeros(len(markings), np.uint64)
        for word, factor in enumerate(self._factors):
            mixed = (mixed ^ markings[:, word]) * factor
            mixed ^= mixed >> _HALF
        mixed *= _SPREAD
        return mixed ^ (mixed >> _HALF)

    def _make_room(self, more: int) -> None:
        """Enlarge the hash table so that it is at most half full after ``more`` additions."""
        needed = self._count + more
        if needed > len(self._rows):
            wider = np.zeros((max(needed, 2 * len(self._rows)), self._rows.shape[1]), np.uint64)
            wider[: self._count] = self.rows
            self._rows = wider
        size = len(self._table)
        while 2 * needed > size:
            size *= 2
        if size == len(self._table):
            return
        self._table = np.full(size, _FREE, np.int32)
        slots = (self._keys(self.rows) & np.uint64(size - 1)).astype(np.int64)
        pending = np.arange(self._count, dtype=np.int32)
        while len(pending):
            free = pending[self._table[slots[pending]] == _FREE]
            self._table[slots[free]] = free
            pending = pending[self._table[slots[pending]] != pending]
            slots[pending] = (slots[pending] + 1) & (size - 1)
