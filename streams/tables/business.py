"""Business time: the hours of a calendar as sorted intervals, and deadlines and durations within these hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

Us = NDArray[np.int64]

PREFIX = "calendar:"
"""Prefix of the name under which a calendar is stored as a table. Other tables have no colon in their names."""

OPENS = "opens"
"""The column with the start of each interval, which is the key of the table."""

NEVER = np.int64(np.iinfo(np.int64).max)
"""Marks a missing deadline: a time, or its deadline, is outside the years of the calendar."""


@dataclass(frozen=True, eq=False)
class BusinessHours:
    """The business hours of a calendar.

    Attributes:
        zone: Time zone of the calendar, in which texts without a zone are read.
        opens, closes: Start and end of each interval of business time, sorted. Intervals do not overlap.
        begins, ends: Start and end of each business day. No day occurs twice.
    """

    zone: str
    opens: Us
    closes: Us
    begins: Us
    ends: Us

    @classmethod
    def of_intervals(cls, zone: str, opens: Us, closes: Us, begins: Us, ends: Us) -> BusinessHours:
        """Create the hours from at least one interval.

        ``begins`` and ``ends`` have the start and end of the business day of each interval.
        """
        is_first = np.append([True], begins[1:] != begins[:-1])
        return cls(zone, opens, closes, begins[is_first], ends[is_first])

    @property
    def _passed(self) -> Us:
        """For each interval, the total length of all earlier intervals in microseconds.

        The last item is the total length of all intervals.
        """
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.closes - self.opens)])

    def covers(self, times: Us) -> NDArray[np.bool_]:
        """Return a mask of the times between the start of the first business day and the end of the last one."""
        covered: NDArray[np.bool_] = (times >= self.begins[0]) & (times <= self.ends[-1])
        return covered

    def elapsed(self, times: Us) -> Us:
        """Return the business time from the start of the calendar to each time, in microseconds."""
        number = np.searchsorted(self.opens, times, side="right")
        last = np.maximum(number - 1, 0)
        inside = np.minimum(times, self.closes[last]) - self.opens[last]
        return np.where(number > 0, self._passed[last] + inside, 0)

    def after_hours(self, times: Us, amounts: Us) -> Us:
        """Return, for each time, the moment at which an amount of business time has passed since then.

        ``amounts`` are business times in microseconds, at least 1. The result is ``NEVER`` if the time or the moment is
        outside the years of the calendar.
        """
        due = self.elapsed(times) + np.minimum(amounts, NEVER // 2)
        number = np.searchsorted(self._passed, due)
        place = np.minimum(number, len(self.opens))
        return self._covered_deadlines(
            times, self.closes[place - 1] - (self._passed[place] - due), number <= len(self.opens)
        )

    def after_days(self, times: Us, days: Us) -> Us:
        """Return for each time the end of the business day that is ``days`` business days later.

        Day 0 is the last business day that has started at the given time. The result is ``NEVER`` if the time or this
        day is outside the years of the calendar.
        """
        place = np.searchsorted(self.begins, times, side="right") + np.minimum(days, len(self.begins)) - 1
        is_known = place < len(self.ends)
        return self._covered_deadlines(times, self.ends[np.where(is_known, place, 0)], is_known)

    def _covered_deadlines(self, times: Us, deadlines: Us, is_known: NDArray[np.bool_]) -> Us:
        return np.where(is_known & self.covers(times), deadlines, NEVER)


def hours_of(columns: Sequence[pa.Array]) -> BusinessHours:
    """Read the hours of a calendar from the columns of its rows."""
    opens, closes, begins, ends = (np.asarray(column) for column in columns[:4])
    return BusinessHours.of_intervals(orjson.loads(columns[4][0].as_py())["zone"], opens, closes, begins, ends)


def title_of(name: str) -> str:
    """Return a table's name for messages. It is ``table 'x'``, or ``calendar 'x'`` if the table stores a calendar."""
    return f"calendar {name.removeprefix(PREFIX)!r}" if name.startswith(PREFIX) else f"table {name!r}"
