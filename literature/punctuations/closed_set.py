"""The keys that an input has closed: a set of single keys, and intervals that are merged where they touch.

Source: section 3.3 of the specification of punctuation-aware joins (hash set and coalesced intervals). An interval is a
pair of *cuts*: a cut lies before or after a value, so open and closed bounds and both infinities compare alike. On
integers, neighbours touch: dense keys that are closed one by one become one interval.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TypeAlias

from literature.punctuations.patterns import (
    Anything,
    Domain,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Value,
    is_missing,
    require_domain,
)

_Cut: TypeAlias = tuple[
    int, Value, int
]  # -1, 0 or 1: below all, at a value, above all; the value; 0 before, 1 after it
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_BELOW_ALL: _Cut = (-1, 0, 0)
_ABOVE_ALL: _Cut = (1, 0, 0)


class ClosedSet:
    """The closed keys of an input, all of one type.

    Args:
        domain: The type of the keys.

    Attributes:
        domain: The type of the keys.
        singles: Closed keys outside the intervals.
    """

    def __init__(self, domain: Domain = "integer") -> None:
        self.domain: Domain = domain
        self.singles: set[Value] = set()
        self._starts: list[_Cut] = []
        self._ends: list[_Cut] = []

    def __len__(self) -> int:
        """The number of stored single keys and intervals."""
        return len(self.singles) + len(self._starts)

    def add(self, pattern: Pattern) -> bool:
        """Close the keys of a pattern.

        Returns:
            Whether some of them were open; False for an empty pattern.

        Raises:
            PunctuationRefused: Its values have another type.
        """
        require_domain(pattern, self.domain)
        if isinstance(pattern, OneOf):
            return sum([self._add_single(value) for value in pattern.values]) > 0
        if isinstance(pattern, Nothing):
            return False
        start, end = self._cuts(pattern)
        return start < end and self._add_interval(start, end)

    def covers(self, value: Value | None) -> bool:
        """Whether a key is closed. Null and NaN never are."""
        if value is None or is_missing(value):
            return False
        if value in self.singles:
            return True
        place = bisect_right(self._starts, (0, value, 0)) - 1
        return place >= 0 and (0, value, 1) <= self._ends[place]

    def covers_all(self, pattern: Pattern) -> bool:
        """Whether all keys of a pattern are closed; a range of numbers or texts must lie in one interval."""
        if isinstance(pattern, OneOf):
            return all(map(self.covers, pattern.values))
        if isinstance(pattern, Nothing):
            return True
        start, end = self._cuts(pattern)
        if start >= end or (start[:2] == end[:2] and start[1] in self.singles):  # integers that touch are an interval
            return True
        place = bisect_right(self._starts, start) - 1
        return place >= 0 and end <= self._ends[place]

    def discard(self, value: Value) -> bool:
        """Forget a single key; a key in an interval stays closed. Returns whether it was forgotten."""
        if value not in self.singles:
            return False
        self.singles.remove(value)
        return True

    def intervals(self) -> list[Range]:
        """The intervals, ascending."""
        return [
            Range(
                low=start[1] if start[0] == 0 else None,
                high=end[1] if end[0] == 0 else None,
                has_low=start[2] == 0,
                has_high=end[2] == 1,
            )
            for start, end in zip(self._starts, self._ends, strict=True)
        ]

    def patterns(self) -> list[Pattern]:
        """Patterns that make the same set when they are added to an empty one."""
        singles: list[Pattern] = [OneOf(frozenset(self.singles))] if self.singles else []
        return [*singles, *self.intervals()]

    def _cuts(self, pattern: Range | Anything) -> tuple[_Cut, _Cut]:
        if isinstance(pattern, Anything):
            return _BELOW_ALL, _ABOVE_ALL
        start = _BELOW_ALL if pattern.low is None else self._cut(pattern.low, 0 if pattern.has_low else 1, is_end=False)
        end = _ABOVE_ALL if pattern.high is None else self._cut(pattern.high, 1 if pattern.has_high else 0, is_end=True)
        return start, end

    def _cut(self, value: Value, side: int, *, is_end: bool) -> _Cut:
        """A cut; on integers, a start lies before and an end after a value."""
        if self.domain != "integer" or not isinstance(value, int) or side == is_end:
            return (0, value, side)
        if is_end:
            return (0, value - 1, 1) if value > _LEAST else _BELOW_ALL
        return (0, value + 1, 0) if value < _GREATEST else _ABOVE_ALL

    def _add_single(self, value: Value) -> bool:
        if self.covers(value):
            return False
        if self.domain == "integer" and isinstance(value, int) and self._has_neighbour(value):
            return self._add_interval((0, value, 0), (0, value, 1))
        self.singles.add(value)
        return True

    def _has_neighbour(self, value: int) -> bool:
        return self.covers(value - 1) or self.covers(value + 1)

    def _add_interval(self, start: _Cut, end: _Cut) -> bool:
        """Merge an interval into the set, with the single keys that it contains or, on integers, touches."""
        before = bisect_right(self._starts, start) - 1
        if before >= 0 and end <= self._ends[before]:
            return False
        if self.domain == "integer":
            start, end = self._with_neighbours(start, end)
        self._drop_singles(start, end)
        reach_start, reach_end = self._reach(start, end)
        first = bisect_left(self._ends, reach_start)
        last = bisect_right(self._starts, reach_end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        return True

    def _drop_singles(self, start: _Cut, end: _Cut) -> None:
        """Remove the single keys that an interval contains."""
        low, high = start[1], end[1]
        is_finite = start[0] == end[0] == 0 and isinstance(low, int) and isinstance(high, int)
        if is_finite and self.domain == "integer" and high - low < len(self.singles):  # type: ignore[operator]
            self.singles.difference_update(range(low, high + 1))  # type: ignore[arg-type, operator]
        else:
            self.singles = {key for key in self.singles if not start <= (0, key, 0) < end}

    def _with_neighbours(self, start: _Cut, end: _Cut) -> tuple[_Cut, _Cut]:
        """An interval of integers with the single keys right before and after it."""
        while start[0] == 0 and isinstance(start[1], int) and start[1] - 1 in self.singles:
            start = (0, start[1] - 1, 0)
        while end[0] == 0 and isinstance(end[1], int) and end[1] + 1 in self.singles:
            end = (0, end[1] + 1, 1)
        return start, end

    def _reach(self, start: _Cut, end: _Cut) -> tuple[_Cut, _Cut]:
        """The cuts up to which other intervals touch this one; on integers, after 3 touches before 4."""
        if self.domain != "integer":
            return start, end
        if start[0] == 0 and isinstance(start[1], int):
            start = (0, start[1] - 1, 1)
        if end[0] == 0 and isinstance(end[1], int):
            end = (0, end[1] + 1, 0)
        return start, end


def closed_of(patterns: Iterable[Pattern], domain: Domain) -> ClosedSet:
    """The set of keys that some patterns close together."""
    closed = ClosedSet(domain)
    for pattern in patterns:
        closed.add(pattern)
    return closed
