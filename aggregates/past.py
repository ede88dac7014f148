"""The values of groups at earlier times, which conditions read with ``before``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from aggregates.scalars import Scalar

_FEW = 64  # most listed changes of forgotten groups, in addition to the number of values
Values: TypeAlias = Sequence[Scalar] | None
"""The values of a window, or None if no event was in the window."""


class Past:
    """The values of each group at earlier times, for conditions with ``before``.

    An entry has the time of a change and the group's values from this time on.

    Args:
        longest_us: The greatest age of values that the condition reads.
        is_exact: Whether values are read at the ends of windows only.

    Attributes:
        size: The number of entries of all groups.
    """

    def __init__(self, longest_us: int, *, is_exact: bool) -> None:
        self._longest_us, self._is_exact = longest_us, is_exact
        self._of: dict[str, list[tuple[int, Values]]] = {}
        self._changes: list[tuple[int, str]] = []  # a heap: time and group of each value
        self.size = 0

    def remember(self, group: str, time_us: int, values: Values) -> None:
        """Add ``values`` as the values of a group from ``time_us`` on."""
        past = self._of.setdefault(group, [])
        if past and past[-1][0] == time_us:
            past[-1] = time_us, values
        elif not past or values is not None or past[-1][1] is not None:
            past.append((time_us, values))
            heappush(self._changes, (time_us, group))
            self.size += 1

    def at(self, group: str, time_us: int) -> Values:
        """Return the values that a group had at a time, or None if they are unknown.

        With ``is_exact``, they are known only if a window ended at exactly this time.
        """
        past = self._of.get(group, ())
        place = bisect_right(past, time_us, key=_time) - 1
        if place < 0 or (self._is_exact and past[place][0] != time_us):
            return None
        return past[place][1]

    def forget(self, group: str) -> None:
        self.size -= len(self._of.pop(group, ()))
        if len(self._changes) > 2 * self.size + _FEW:
            self._list_changes()

    def forget_until(self, now_us: int) -> None:
        """Forget the entries that no condition can read any more at ``now_us``.

        Values apply until the next entry of their group, so the newest entry before the greatest age is kept.
        """
        until_us = now_us - self._longest_us - self._is_exact
        while self._changes and self._changes[0][0] <= until_us:
            _, group = heappop(self._changes)
            past = self._of.get(group, [])
            count = bisect_right(past, until_us, key=_time)
            if count and not self._is_exact and past[count - 1][1] is not None:
                count -= 1
            del past[:count]
            self.size -= count
            if not past:
                self._of.pop(group, None)

    def dump(self) -> dict[str, Any]:
        """Return the entries of all groups as plain JSON."""
        return dict(self._of)

    def load(self, saved: dict[str, Any]) -> None:
        self._of = {group: [(time_us, values) for time_us, values in past] for group, past in saved.items()}
        self._list_changes()
        self.size = len(self._changes)

    def _list_changes(self) -> None:
        self._changes = [(time_us, group) for group, past in self._of.items() for time_us, _ in past]
        heapify(self._changes)


def _time(change: tuple[int, Any]) -> int:
    return change[0]
