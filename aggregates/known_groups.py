"""The groups of an aggregate, or their fixed windows. Each has a number, its code. Its hash leads to the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from aggregates.columns import EventColumns, group_hash, texts_at
from aggregates.kernels.groups import find_codes
from aggregates.scalars import Scalar, group_text
from aggregates.texts import TextPool

EVERY = ("all",) * 17
"""The ``by`` values of the group of all events, for values over all groups; no other group has so long a tuple."""

_OF_ALL = group_text(EVERY)
_LEAST = 1_024
_SPARE = 16  # growing arrays get one spare place per this number
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # makes the hashes of a group's windows differ


class KnownGroups:
    """The groups of an aggregate by code: their ``by`` values, their keys, and their hashes.

    Codes are the numbers 0, 1, and so on. If windows are fixed, each window of a group has its own code. If
    ``are_keys``, the correlation key is the group.
    """

    def __init__(self, *, are_keys: bool) -> None:
        self._are_keys = are_keys  # whether the group is the key, so that values and hash need not be kept
        self._texts, self._keys = TextPool(), TextPool()
        self._key_hashes = np.zeros(0, np.uint64)
        self.starts = np.zeros(0, np.int64)
        self._hashes = np.zeros(_LEAST, np.uint64)
        self._table = np.full(2 * _LEAST, -1, np.int32)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def key_hashes(self) -> NDArray[np.uint64]:
        """The hashes of the correlation keys of all groups, by code of the group."""
        return self.key_hashes_of(slice(len(self)))

    def described(self, codes: NDArray[np.integer]) -> Iterator[tuple[Sequence[Scalar], str, str]]:
        """Yield, for each of the groups ``codes``, its ``by`` values, its canonical text and its correlation key."""
        keys = self._keys.texts_at(codes)
        texts = [orjson.dumps((key,)).decode() for key in keys] if self._are_keys else self._texts.texts_at(codes)
        return zip(((key,) for key in keys) if self._are_keys else map(orjson.loads, texts), texts, keys, strict=True)

    def key_hashes_of(self, codes: NDArray[np.integer] | slice) -> NDArray[np.uint64]:
        hashes: NDArray[np.uint64] = (self._hashes if self._are_keys else self._key_hashes)[codes]
        return _with_starts(hashes, self.starts[codes] if self._are_keys and len(self.starts) else None)

    def saved(self) -> Iterator[tuple[Sequence[Scalar], str, int]]:
        """Yield the state of each group for ``restore``: its ``by`` values, its key, and the hash of the key."""
        values = ((key,) for key in self._keys) if self._are_keys else map(orjson.loads, self._texts)
        return zip(values, self._keys, self.key_hashes.tolist(), strict=True)

    def is_of_all(self, code: int) -> bool:
        """Check whether a code is that of the group of all events, for values over all groups."""
        return not self._are_keys and self._texts.text(code) == _OF_ALL

    def code_of(self, hashed: int) -> int:
        """Return the code of the group with this hash, or -1 if none has it."""
        place = ((hashed >> 32) * len(self._table)) >> 32
        while (code := int(self._table[place])) >= 0 and int(self._hashes[code]) != hashed:
            place = (place + 1) % len(self._table)
        return code

    def codes_of_key(self, key_hash: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.key_hashes == np.uint64(key_hash))

    def hashes_of(self, key_hash: int) -> list[int]:
        """Return the hashes of the groups whose events have this correlation key (hashed)."""
        return [int(self._hashes[code]) for code in self.codes_of_key(key_hash).tolist()]

    def codes_of(
        self,
        hashes: NDArray[np.uint64],
        starts: NDArray[np.int64] | None,
        rows: NDArray[np.int64],
        events: EventColumns,
    ) -> NDArray[np.int32]:
        """Return the code of the group of each event in ``rows``, given the ``hashes`` of the groups.

        New groups get codes. With ``starts``, the beginnings of fixed windows, return the codes of these windows. The
        entry ``~row`` in ``rows`` refers to the group of all events.
        """
        count = len(self)
        codes, fresh = self._codes_by_hash(np.require(_with_starts(hashes, starts), np.uint64, ("C", "W")), count)
        if len(fresh):
            chosen = np.where(rows[fresh] < 0, ~rows[fresh], rows[fresh])
            self._keys.append(texts_at(events.keys, chosen))
            if not self._are_keys:
                self._key_hashes = np.concatenate([self._key_hashes, events.key_hashes[chosen]])
                texts = map(group_text, events.groups_at(chosen))
                self._texts.append([_OF_ALL if row < 0 else text for row, text in zip(rows[fresh], texts, strict=True)])
            if starts is not None:
                self.starts = np.concatenate([self.starts, starts[fresh]])
        return codes

    def restore(self, groups: Sequence[Sequence[Any]], starts: NDArray[np.int64] | None) -> None:
        """Restore the groups from the results of ``saved``. ``starts`` are the beginnings of fixed windows, or None."""
        self.__init__(are_keys=self._are_keys)  # type: ignore[misc]
        self._keys.append([key for _, key, *_ in groups])
        if not self._are_keys:
            self._texts.append([group_text(values) for values, *_ in groups])
            self._key_hashes = np.array([hashed for _, _, hashed, *_ in groups], np.uint64)
        self.starts = np.zeros(0, np.int64) if starts is None else starts
        self._codes_by_hash(_with_starts(np.array([group_hash(values) for values, *_ in groups], np.uint64), starts), 0)

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the groups outside the mask ``is_kept``, and renumber the other groups without gaps."""
        hashes = self._hashes[: len(self)][is_kept]
        self._keys.keep(is_kept)
        if not self._are_keys:
            self._texts.keep(is_kept)
            self._key_hashes = self._key_hashes[is_kept]
        self.starts = self.starts[is_kept] if len(self.starts) else self.starts
        self._table = self._table[:0]
        self._grow(0, len(hashes))
        self._codes_by_hash(hashes, 0)

    def _codes_by_hash(self, hashes: NDArray[np.uint64], count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the code for each of ``hashes``, and the rows at which new hashes first appear.

        ``count`` codes are known before the call. New hashes get the codes that follow.
        """
        size, row, first = len(hashes), 0, count
        codes, fresh = np.empty(size, np.int32), np.empty(size, np.int64)
        while True:
            some = (hashes, self._table, self._hashes, codes, fresh)
            count, row = find_codes(*some, row, count, count - first)
            if row == size:
                return codes, fresh[: count - first]
            self._grow(count, (size - row) // 2)  # assumes that half of the remaining rows are new

    def _grow(self, count: int, more: int) -> None:
        known, room = self._hashes[:count], count + max(_LEAST, count // _SPARE, more)
        self._hashes = np.zeros(room, np.uint64)
        if 5 * room > 3 * len(self._table):
            self._table = np.full(5 * room // 2, -1, np.int32)
            none = np.empty(count, np.int64)
            find_codes(known, self._table, self._hashes, np.empty(count, np.int32), none, 0, 0, 0)
        else:
            self._hashes[:count] = known


def _with_starts(hashes: NDArray[np.uint64], starts: NDArray[np.int64] | None) -> NDArray[np.uint64]:
    return hashes if starts is None else hashes ^ (starts.view(np.uint64) * _SPREAD)
