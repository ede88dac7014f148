"""The groups of an aggregate, or their fixed windows, by number: a code for each, found by its hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.columns import EventColumns, group_hash, values_at
from aggregates.kernels.groups import find_codes
from aggregates.rows import Scalar
from aggregates.texts import TextPool

EVERY = ("all",) * 17
"""The values of the group of all events, for values over all groups; ``by`` never has as many attributes."""

_LEAST = 1_024
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # keeps windows of one group apart


class KnownGroups:
    """The values and keys of groups by code (0, 1, and so on); of a fixed window also the time at which it begins."""

    def __init__(self, *, are_keys: bool) -> None:
        self._are_keys = (
            are_keys  # whether a group is its key, so that neither its values nor its hash are kept besides
        )
        self._values: list[tuple[Scalar, ...]] = []
        self._keys = TextPool()
        self._key_hashes = np.zeros(0, np.uint64)
        self.starts = np.zeros(0, np.int64)
        self._hashes = np.zeros(_LEAST, np.uint64)
        self._table = np.full(2 * _LEAST, -1, np.int32)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def key_hashes(self) -> NDArray[np.uint64]:
        """The hashes of the keys of all groups."""
        if self._are_keys:
            return _with_starts(self._hashes[: len(self)], self.starts if len(self.starts) else None)
        return self._key_hashes

    def key(self, code: int) -> str:
        """The key of a group."""
        return self._keys.text(code)

    def values(self, code: int) -> tuple[Scalar, ...]:
        """The values of ``by`` of a group."""
        return (self.key(code),) if self._are_keys else self._values[code]

    def code_of(self, hashed: int) -> int:
        """The code of the group with a hash; -1: there is none."""
        last = len(self._table) - 1
        place = hashed & last
        while (code := int(self._table[place])) >= 0 and int(self._hashes[code]) != hashed:
            place = (place + 1) & last
        return code

    def codes_of_key(self, key_hash: int) -> NDArray[np.int64]:
        """The codes of the groups of a key."""
        return np.flatnonzero(self.key_hashes == np.uint64(key_hash))

    def hashes_of(self, key_hash: int) -> list[int]:
        """The hashes of the groups of a key."""
        return [int(self._hashes[code]) for code in self.codes_of_key(key_hash).tolist()]

    def codes_of(
        self,
        hashes: NDArray[np.uint64],
        starts: NDArray[np.int64] | None,
        rows: NDArray[np.int64],
        events: EventColumns,
    ) -> NDArray[np.int32]:
        """The group of each of some rows of events, or its window; new ones get the next codes.

        Of the group of all events, ``rows`` has the complement of the row.
        """
        count, size = len(self), len(hashes)
        self._reserve(count + size)
        codes, fresh = np.empty(size, np.int32), np.empty(size, np.int64)
        hashes = np.require(_with_starts(hashes, starts), np.uint64, ("C", "W"))
        known = find_codes(hashes, self._table, self._hashes, codes, fresh, count)
        if known > count:
            some = fresh[: known - count]
            chosen = np.where(rows[some] < 0, ~rows[some], rows[some])
            self._keys.append(values_at(events.keys, chosen))
            if not self._are_keys:
                self._key_hashes = np.concatenate([self._key_hashes, events.key_hashes[chosen]])
                values = events.groups_at(chosen)
                self._values += [
                    EVERY if row < 0 else one for row, one in zip(rows[some].tolist(), values, strict=True)
                ]
            if starts is not None:
                self.starts = np.concatenate([self.starts, starts[some]])
        return codes

    def restore(self, groups: Sequence[Sequence[Any]], starts: NDArray[np.int64] | None) -> None:
        """Begin with some groups, each with its values, key and the hash of the key."""
        self.__init__(are_keys=self._are_keys)  # type: ignore[misc]
        self._keys.append([key for _, key, *_ in groups])
        if not self._are_keys:
            self._values = [tuple(values) for values, *_ in groups]
            self._key_hashes = np.array([hashed for _, _, hashed, *_ in groups], np.uint64)
        self.starts = np.zeros(0, np.int64) if starts is None else starts
        self._place(_with_starts(np.array([group_hash(values) for values, *_ in groups], np.uint64), starts))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the other groups; codes close up."""
        hashes = self._hashes[: len(self)][is_kept]
        self._keys.keep(is_kept)
        if not self._are_keys:
            self._values = [self._values[one] for one in np.flatnonzero(is_kept).tolist()]
            self._key_hashes = self._key_hashes[is_kept]
        self.starts = self.starts[is_kept] if len(self.starts) else self.starts
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


def _with_starts(hashes: NDArray[np.uint64], starts: NDArray[np.int64] | None) -> NDArray[np.uint64]:
    return hashes if starts is None else hashes ^ (starts.view(np.uint64) * _SPREAD)
