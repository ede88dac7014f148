"""Keys that inputs have finished by ranges, stored as intervals, so that memory does not grow with the number of keys.

A range applies to the keys that a join knows, and to later keys as they appear. If ranges alone have finished a key,
the key needs no memory of its own. Source: section 3.3 of the specification of punctuation-aware joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streams import GREATEST_NUMBER, LEAST_NUMBER, GrowingNumbers, KeyRange, whole_numbers

_FEW = 1_024

Pairs = Sequence[Sequence[Sequence[int]]]


class Intervals:
    """A set of 64-bit integers, stored as ascending intervals with gaps between them. Both bounds are inclusive."""

    def __init__(self, ranges: Iterable[KeyRange] = ()) -> None:
        self.least = np.zeros(0, np.int64)
        self.greatest = np.zeros(0, np.int64)
        for key_range in ranges:
            self.add(key_range)

    def __len__(self) -> int:
        return len(self.least)

    def add(self, new: KeyRange) -> None:
        """Add all numbers of a range to the set. A range whose least number exceeds its greatest is empty."""
        low, high = new.least, new.greatest
        if low > high:
            return
        first = int(np.searchsorted(self.greatest, max(low - 1, LEAST_NUMBER), side="left"))
        last = int(np.searchsorted(self.least, min(high + 1, GREATEST_NUMBER), side="right"))
        if first < last:
            low, high = min(low, int(self.least[first])), max(high, int(self.greatest[last - 1]))
        self.least = np.concatenate([self.least[:first], np.array([low]), self.least[last:]])
        self.greatest = np.concatenate([self.greatest[:first], np.array([high]), self.greatest[last:]])

    def covers(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the mask of the numbers that are in the set."""
        if not len(self):
            return np.zeros(len(numbers), np.bool_)
        places = np.searchsorted(self.least, numbers, side="right") - 1
        is_covered: NDArray[np.bool_] = (places >= 0) & (numbers <= self.greatest[places])
        return is_covered

    def pairs(self) -> list[list[int]]:
        """Return the least and greatest number of each interval, ascending."""
        bounds: list[list[int]] = np.stack([self.least, self.greatest], 1).tolist()
        return bounds


class FinishedRanges:
    """The ranges of whole-number keys that each input of a join has finished.

    Keys are hashed elsewhere, so the numbers of the known keys are kept by hash.
    """

    def __init__(self, inputs: int) -> None:
        self._closed = [Intervals() for _ in range(inputs)]
        self._set_numbers(np.zeros(0, np.uint64), np.zeros(0, np.int64))

    @property
    def has_any(self) -> bool:
        """Whether any input has finished a range of keys."""
        return any(map(len, self._closed))

    def are_of(self, number: int) -> bool:
        """Check whether the input ``number`` has finished a range of keys."""
        return len(self._closed[number]) > 0

    def note(self, keys: pa.Array, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Remember the numbers of those ``keys`` (texts) that are whole numbers. Return their mask, and the numbers."""
        is_whole, numbers = whole_numbers(keys)
        self._hashes.add(hashes[is_whole])
        self._numbers.add(numbers[is_whole])
        return is_whole, numbers

    def prune(self, known_keys: NDArray[np.uint64]) -> None:
        """Forget the numbers of all keys that are not in ``known_keys`` (hashed)."""
        hashes, first = np.unique(self._hashes.values, return_index=True)
        is_known = np.isin(hashes, known_keys)
        self._set_numbers(hashes[is_known], self._numbers.values[first[is_known]])

    @property
    def needs_pruning(self) -> bool:
        """Whether so much has been noted since the last ``prune`` that another one is worth its cost."""
        return len(self._hashes) > self._most

    def covers(self, number: int, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the mask of the ``keys``, as whole numbers, that the input ``number`` has finished by a range."""
        return self._closed[number].covers(keys)

    def finish(self, number: int, finished: KeyRange, known_keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Add a range that the input ``number`` has finished.

        Return the known keys in the range: hashes, in numeric order. Numbers of keys that are not in ``known_keys``
        (hashes) are forgotten.
        """
        self.prune(known_keys)
        self._closed[number].add(finished)
        numbers = self._numbers.values
        is_inside = (numbers >= finished.least) & (numbers <= finished.greatest)
        hashes: NDArray[np.uint64] = self._hashes.values[is_inside][np.argsort(numbers[is_inside])]
        return hashes

    def implied(self, keys: NDArray[np.uint64], closed: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return those ``keys`` (hashes of finished keys) that no input closed except by a finished range.

        ``closed`` has the inputs that closed each key, as bits. The caller has called ``prune``.
        """
        hashes = self._hashes.values
        places = np.searchsorted(hashes, keys)
        is_number = places < len(hashes)
        is_number[is_number] = hashes[places[is_number]] == keys[is_number]
        keys, closed, numbers = keys[is_number], closed[is_number], self._numbers.values[places[is_number]]
        by_range = np.zeros(len(keys), np.uint64)
        for number in range(len(self._closed)):
            by_range |= self.covers(number, numbers).astype(np.uint64) << np.uint64(number)
        implied_keys: NDArray[np.uint64] = keys[closed & ~by_range == 0]
        return implied_keys

    def dump(self) -> tuple[list[list[list[int]]], dict[str, bytes]]:
        """Return the intervals of each input as pairs of bounds, and the numbers of known keys as sections by name."""
        return [closed.pairs() for closed in self._closed], {
            "hashes": self._hashes.values.tobytes(),
            "numbers": self._numbers.values.tobytes(),
        }

    @classmethod
    def load(cls, pairs: Pairs, sections: Mapping[str, bytes]) -> FinishedRanges:
        """Restore the ranges that ``dump`` saved."""
        finished_ranges = cls(len(pairs))
        finished_ranges._closed = [Intervals(KeyRange(low=low, high=high) for low, high in bounds) for bounds in pairs]
        finished_ranges._set_numbers(
            np.frombuffer(sections["hashes"], np.uint64), np.frombuffer(sections["numbers"], np.int64)
        )
        return finished_ranges

    def _set_numbers(self, hashes: NDArray[np.uint64], numbers: NDArray[np.int64]) -> None:
        self._hashes, self._numbers = GrowingNumbers(hashes), GrowingNumbers(numbers)
        self._most = max(_FEW, 4 * len(hashes))
