"""The closed keys of both inputs of a join, as tables for kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from literature.kernels.buckets import ClosedTable, close_hashes, open_hash, which_closed
from literature.punctuations import ClosedSet, OneOf, Pattern
from literature.punctuations.patterns import Range

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it can be inverted
_BACK = np.uint64(pow(int(_SPREAD), -1, 1 << 64))
_FIRST_ROOM = 64
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def hashes_of(keys: Sequence[int] | NDArray[np.int64]) -> NDArray[np.uint64]:
    """Integer keys spread over 64 bits, one to one."""
    spread: NDArray[np.uint64] = np.asarray(keys, np.int64).view(np.uint64) * _SPREAD
    return spread


def keys_of(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The keys with these hashes."""
    keys: NDArray[np.int64] = (hashes * _BACK).view(np.int64)
    return keys


class ClosedKeys:
    """Closed integer keys of two inputs.

    Attributes:
        sets: The closed keys of each input.
        table: The same keys for kernels; may be another object after a change.
        changes: How often each input closed further keys, since this object was made.
    """

    def __init__(self, patterns: Sequence[Iterable[Pattern]] = ((), ())) -> None:
        self.sets = (ClosedSet("integer"), ClosedSet("integer"))
        self.changes = [0, 0]
        self._bounds: list[tuple[int, NDArray[np.int64]]] = [(-1, np.zeros((0, 2), np.int64))] * 2
        self._filled = 0
        for closed, input_patterns in zip(self.sets, patterns, strict=True):
            for pattern in input_patterns:
                closed.add(pattern)
        self.table = self._rebuilt()

    def add(self, number: int, pattern: Pattern) -> bool:
        """Close the keys of a pattern on an input; returns whether some of them were open.

        Raises:
            PunctuationRefused: A value of the pattern is no integer.
        """
        if not self.sets[number].add(pattern):
            return False
        self.changes[number] += 1
        if not isinstance(pattern, OneOf):
            self.table = self._rebuilt()
            return True
        hashes = hashes_of([int(value) for value in pattern.values])
        if 2 * (self._filled + len(hashes)) > len(self.table.slots):
            self.table = self._rebuilt()
        else:
            self._filled += close_hashes(self.table.slots, hashes, np.uint64(1 << number))
        return True

    def covers(self, number: int, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which keys an input has closed."""
        flags = np.zeros(len(keys), np.bool_)
        which_closed(self.table, number, np.ascontiguousarray(keys), hashes_of(keys), flags)
        return flags

    def meets(self, number: int, low: int, high: int) -> bool:
        """Whether an input has closed a key from ``low`` to ``high``; a forgotten key may count."""
        if self._bounds[number][0] != self.changes[number]:
            closed = self.sets[number]
            pairs = [_bounds(interval) for interval in closed.intervals()] + [
                (int(key), int(key)) for key in closed.singles
            ]
            self._bounds[number] = self.changes[number], np.array(sorted(pairs), np.int64).reshape(-1, 2)
        bounds = self._bounds[number][1]
        place = int(np.searchsorted(bounds[:, 0], high, "right")) - 1
        return bool(place >= 0 and bounds[place, 1] >= low)

    def forget(self, key: int) -> bool:
        """Forget a key that both inputs closed singly, not in an interval. Returns whether it was forgotten."""
        if any(key not in closed.singles for closed in self.sets):
            return False
        for closed in self.sets:
            closed.discard(key)
        self._filled -= open_hash(self.table.slots, hashes_of([key])[0])
        return True

    def _rebuilt(self) -> ClosedTable:
        """Tables of the present sets, with room for twice as many single keys."""
        singles = [[int(value) for value in closed.singles] for closed in self.sets]
        room = max(_FIRST_ROOM, 4 * sum(map(len, singles)))
        slots = np.zeros((1 << (room - 1).bit_length(), 2), np.uint64)
        self._filled = 0
        for number, keys in enumerate(singles):
            self._filled += close_hashes(slots, hashes_of(keys), np.uint64(1 << number))
        intervals = [[_bounds(interval) for interval in closed.intervals()] for closed in self.sets]
        bounds = np.zeros((2, 2, max(map(len, intervals))), np.int64)
        for number, ranges in enumerate(intervals):
            for place, pair in enumerate(ranges):
                bounds[:, number, place] = pair
        sizes = np.array([len(ranges) for ranges in intervals], np.int64)
        return ClosedTable(slots, bounds[0].copy(), bounds[1].copy(), sizes)


def _bounds(interval: Range) -> tuple[int, int]:
    """Least and greatest key of an interval of integers."""
    return _LEAST if interval.low is None else int(interval.low), _GREATEST if interval.high is None else int(
        interval.high
    )
