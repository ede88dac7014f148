"""Intervals of whole numbers, merged where they touch: memory grows with the number of ranges, not of keys.

Source: section 3.3 of the specification of punctuation-aware joins (coalesced intervals).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from streams import GREATEST_NUMBER, LEAST_NUMBER, KeyRange


class Intervals:
    """A set of 64-bit integers as ascending intervals that do not touch; both bounds are inclusive."""

    def __init__(self, ranges: Iterable[KeyRange] = ()) -> None:
        self.least = np.zeros(0, np.int64)
        self.greatest = np.zeros(0, np.int64)
        for one in ranges:
            self.add(one)

    def __len__(self) -> int:
        """Number of intervals."""
        return len(self.least)

    def add(self, new: KeyRange) -> None:
        """Add the numbers of a range; a range whose bounds cross is empty."""
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
        """The mask of the numbers that are in the set."""
        if not len(self):
            return np.zeros(len(numbers), np.bool_)
        places = np.searchsorted(self.least, numbers, side="right") - 1
        found: NDArray[np.bool_] = (places >= 0) & (numbers <= self.greatest[places])
        return found

    def pairs(self) -> list[list[int]]:
        """The bounds of each interval, ascending."""
        found: list[list[int]] = np.stack([self.least, self.greatest], 1).tolist()
        return found
