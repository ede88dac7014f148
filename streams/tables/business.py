"""Business time: the hours of a calendar as sorted intervals, with the deadlines and durations in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

Us = NDArray[np.int64]

PREFIX = "calendar:"
"""Prefix of the name under which a calendar is stored as a table; other tables have no colon in their names."""

OPENS = "opens"
"""The column with the beginning of each interval; the key of the table."""

NEVER = np.int64(np.iinfo(np.int64).max)
"""Marks a missing deadline: the time, or its deadline, is outside the years of the calendar."""


@dataclass(frozen=True, eq=False)
class BusinessHours:
    """The business hours of a calendar.

    Attributes:
        zone: Time zone of the calendar, in which texts without a zone are read.
        opens, closes: Begin and end of each interval of business time, ascending; an end is at most the next begin.
        begins, ends: Begin and end of each business day, without repeats.
    """

    zone: str
    opens: Us
    closes: Us
    begins: Us
    ends: Us

    @classmethod
    def of_intervals(cls, zone: str, opens: Us, closes: Us, begins: Us, ends: Us) -> BusinessHours:
        """The hours of at least one interval; ``begins`` and ``ends`` limit the business day of each interval."""
        is_first = np.append([True], begins[1:] != begins[:-1])
        return cls(zone, opens, closes, begins[is_first], ends[is_first])

    @property
    def _passed(self) -> Us:
        """Business time before each interval, followed by the total; microseconds."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.closes - self.opens)])

    def covers(self, times: Us) -> NDArray[np.bool_]:
        """Mask of the times from the begin of the calendar's first business day to the end of its last business day."""
        covered: NDArray[np.bool_] = (times >= self.begins[0]) & (times <= self.ends[-1])
        return covered

    def elapsed(self, times: Us) -> Us:
        """Business time from the beginning of the calendar to each time, in microseconds."""
        number = np.searchsorted(self.opens, times, side="right")
        last = np.maximum(number - 1, 0)
        inside = np.minimum(times, self.closes[last]) - self.opens[last]
        return np.where(number > 0, self._passed[last] + inside, 0)

    def after_hours(self, times: Us, amounts: Us) -> Us:
        """The first moment at which ``amounts`` (us, >= 1) of business time have passed since a time, or ``NEVER``."""
        due = self.elapsed(times) + np.minimum(amounts, NEVER // 2)
        number = np.searchsorted(self._passed, due)
        place = np.minimum(number, len(self.opens))
        return self._covered_deadlines(
            times, self.closes[place - 1] - (self._passed[place] - due), number <= len(self.opens)
        )

    def after_days(self, times: Us, days: Us) -> Us:
        """End of the n-th business day (n: ``days``) after each time, or ``NEVER``.

        Day 0 is the last business day that has begun at the time.
        """
        place = np.searchsorted(self.begins, times, side="right") + np.minimum(days, len(self.begins)) - 1
        is_known = place < len(self.ends)
        return self._covered_deadlines(times, self.ends[np.where(is_known, place, 0)], is_known)

    def _covered_deadlines(self, times: Us, deadlines: Us, is_known: NDArray[np.bool_]) -> Us:
        return np.where(is_known & self.covers(times), deadlines, NEVER)


def hours_of(columns: Sequence[pa.Array]) -> BusinessHours:
    """The hours of a calendar from the columns of its rows."""
    opens, closes, begins, ends = (np.asarray(column) for column in columns[:4])
    return BusinessHours.of_intervals(orjson.loads(columns[4][0].as_py())["zone"], opens, closes, begins, ends)


def title_of(name: str) -> str:
    """A table in messages: ``table 'x'``, or ``calendar 'x'`` if the table stores a calendar."""
    return f"calendar {name.removeprefix(PREFIX)!r}" if name.startswith(PREFIX) else f"table {name!r}"
