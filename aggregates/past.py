"""The values of groups at earlier times, which conditions read with ``before``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, TypeAlias

from aggregates.scalars import Scalar
from streams import NEVER_US

Values: TypeAlias = Sequence[Scalar] | None
"""The values of a window; None: no event was in it."""


class Past:
    """The history of each group: times of changes and the values then, as far back as the condition reads.

    Args:
        longest_us: The greatest age of values that the condition reads.
        is_exact: Whether values are read at the ends of windows only.
    """

    def __init__(self, longest_us: int, *, is_exact: bool) -> None:
        self._longest_us, self._is_exact = longest_us, is_exact
        self._of: dict[str, list[tuple[int, Values]]] = {}
        self._next_us = -NEVER_US  # the time before which nothing can be forgotten

    def __len__(self) -> int:
        return len(self._of)

    def remember(self, group: str, time_us: int, values: Values) -> None:
        """Note the values that a group has from a time on."""
        self._next_us = min(self._next_us, time_us + self._longest_us)
        past = self._of.setdefault(group, [])
        if past and past[-1][0] == time_us:
            past[-1] = time_us, values
        elif not past or values is not None or past[-1][1] is not None:
            past.append((time_us, values))
        current = bisect_right(past, time_us - self._longest_us, key=_time) - 1
        if current > 0:
            del past[:current]

    def at(self, group: str, time_us: int) -> Values:
        """The values of a group at an earlier time; with ``is_exact``, of the window that ended exactly then."""
        past = self._of.get(group, ())
        place = bisect_right(past, time_us, key=_time) - 1
        if place < 0 or (self._is_exact and past[place][0] != time_us):
            return None
        return past[place][1]

    def forget(self, group: str) -> None:
        """Forget the values of a group."""
        self._of.pop(group, None)

    def forget_until(self, now_us: int) -> None:
        """Forget the groups whose windows are empty or fixed, if their values can no longer be read."""
        if now_us <= self._next_us:
            return
        ends_us = {
            group: past[-1][0] + self._longest_us
            for group, past in self._of.items()
            if past[-1][1] is None or self._is_exact
        }
        for group, end_us in ends_us.items():
            if end_us < now_us:
                del self._of[group]
        self._next_us = min((next_us for next_us in ends_us.values() if next_us >= now_us), default=-NEVER_US)

    def dump(self) -> dict[str, Any]:
        """The state as plain JSON."""
        return dict(self._of)

    def load(self, saved: dict[str, Any]) -> None:
        """Restore what ``dump`` returned."""
        self._of = {group: [(time_us, values) for time_us, values in past] for group, past in saved.items()}


def _time(change: tuple[int, Any]) -> int:
    return change[0]
