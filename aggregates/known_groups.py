"""The groups of a sliding window by number: a code for each, found by its hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.columns import EventColumns, group_hash
from aggregates.kernels.sliding import find_codes
from aggregates.rows import Scalar

_LEAST = 1_024


class KnownGroups:
    """The values and keys of groups by code; codes are 0, 1, and so on."""

    def __init__(self) -> None:
        self.values: list[tuple[Scalar, ...]] = []
        self.keys: list[str] = []
        self.key_hashes = np.zeros(0, np.uint64)
        self._hashes = np.zeros(_LEAST, np.uint64)
        self._table = np.full(2 * _LEAST, -1, np.int32)

    def __len__(self) -> int:
        return len(self.keys)

    def codes_of(self, events: EventColumns) -> NDArray[np.int32]:
        """The group of each event; new groups get the next codes."""
        count, size = len(self), len(events)
        self._reserve(count + size)
        codes, fresh = np.empty(size, np.int32), np.empty(size, np.int64)
        known = find_codes(
            np.require(events.hashes, np.uint64, ("C", "W")), self._table, self._hashes, codes, fresh, count
        )
        if known > count:
            rows = fresh[: known - count]
            values, keys = events.groups_at(rows)
            self.values += values
            self.keys += keys
            self.key_hashes = np.concatenate([self.key_hashes, events.key_hashes[rows]])
        return codes

    def restore(self, groups: Sequence[Sequence[Any]]) -> None:
        """Begin with some groups, each with its values, key and the hash of the key."""
        self.__init__()  # type: ignore[misc]
        self.values = [tuple(values) for values, *_ in groups]
        self.keys = [key for _, key, *_ in groups]
        self.key_hashes = np.array([hashed for _, _, hashed, *_ in groups], np.uint64)
        self._place(np.array([group_hash(values) for values in self.values], np.uint64))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the other groups; codes close up."""
        hashes = self._hashes[: len(self)][is_kept]
        places = np.flatnonzero(is_kept).tolist()
        self.values, self.keys = [self.values[one] for one in places], [self.keys[one] for one in places]
        self.key_hashes = self.key_hashes[is_kept]
        self._place(hashes)

    def _reserve(self, count: int) -> None:
        """Make room for a number of groups."""
        if count > len(self._hashes) or 2 * count > len(self._table):
            self._place(self._hashes[: len(self)].copy(), count)

    def _place(self, hashes: NDArray[np.uint64], count: int = 0) -> None:
        """Enter the hashes of all groups into a new table."""
        room = max(_LEAST, count + count // 8, len(hashes))
        self._hashes = np.zeros(room, np.uint64)
        self._table = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
        size = len(hashes)
        find_codes(hashes, self._table, self._hashes, np.empty(size, np.int32), np.empty(size, np.int64), 0)
