"""A group with its windows, its time, and its values at earlier times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aggregates.contents import WindowContents, loaded_contents
from aggregates.rows import Row, Scalar, group_text, normal_group
from aggregates.values import AggregateValue
from aggregates.windows import Window
from streams import NEVER_US

ONLY = 0
"""The place of the window of a group that has one window at a time."""


@dataclass(slots=True)
class Group:
    """A group.

    Attributes:
        values: The values of ``by``.
        text: Their canonical text.
        key: The correlation key of its derived events, and its hash.
        windows: Contents by the beginning of fixed windows, or one at ``ONLY``; none is empty.
        clock_us: The time up to which the windows are current.
        is_true: Whether the condition was true when it was last examined.
        pending_us: With simultaneous ties, the time whose evaluation waits for further events of it.
        pending_id: The last event of that time; empty: no event came.
        noted_us: When the aggregate looks at the group next; None: never.
        past: Times at which values changed, and the values; None: the window was empty. Kept as far back as the
            condition reads.
    """

    values: tuple[Scalar, ...]
    text: str
    key: str
    key_hash: int
    windows: dict[int, WindowContents] = field(default_factory=dict)
    clock_us: int = NEVER_US
    is_true: bool = False
    pending_us: int | None = None
    pending_id: str = ""
    noted_us: int | None = None
    past: list[tuple[int, tuple[Scalar, ...] | None]] = field(default_factory=list)

    @classmethod
    def of(cls, row: Row, text: str) -> Group:
        """A new group of an event."""
        return cls(normal_group(row.group), text, row.key, row.key_hash)

    @property
    def only(self) -> WindowContents | None:
        """The window of a group that has one window at a time; None: no event is in it."""
        return self.windows.get(ONLY)

    def due_us(self, window: Window) -> int | None:
        """When time alone changes something: the next expiry or end of a window; None: never."""
        if window.is_fixed:
            return min(self.windows) + window.size if self.windows else None
        only = self.only
        if only is None or window.kind in ("last", "transaction"):
            return None
        return (only.oldest_us if window.kind == "sliding" else only.newest_us) + window.size

    def remember(self, time_us: int, values: tuple[Scalar, ...] | None, longest_us: int) -> None:
        """Note the values from a time on, and forget what is too old to be read."""
        past = self.past
        if past and past[-1][0] == time_us:
            past[-1] = time_us, values
        elif not past or past[-1][1] != values or values is not None:
            past.append((time_us, values))
        current = bisect_right(past, time_us - longest_us, key=_time) - 1
        if current > 0:
            del past[:current]

    def at(self, time_us: int, *, is_exact: bool) -> tuple[Scalar, ...] | None:
        """The values at an earlier time, or those of the window that ended exactly then; None: no event was in it."""
        place = bisect_right(self.past, time_us, key=_time) - 1
        if place < 0 or (is_exact and self.past[place][0] != time_us):
            return None
        return self.past[place][1]

    def dump(self) -> list[Any]:
        """As plain JSON."""
        windows = [[start, contents.dump()] for start, contents in self.windows.items()]
        return [
            self.values,
            self.key,
            self.key_hash,
            self.clock_us,
            self.is_true,
            self.pending_us,
            self.pending_id,
            self.past,
            windows,
        ]

    @classmethod
    def load(cls, saved: Sequence[Any], values: Sequence[AggregateValue]) -> Group:
        """Read the JSON form of ``dump``."""
        group, key, hashed, clock_us, is_true, pending_us, pending_id, past, windows = saved
        found = cls(tuple(group), group_text(group), key, hashed, {}, clock_us, is_true, pending_us, pending_id)
        found.past = [(time_us, None if one is None else tuple(one)) for time_us, one in past]
        found.windows = {start: loaded_contents(contents, values) for start, contents in windows}
        return found


def _time(change: tuple[int, Any]) -> int:
    return change[0]
