"""Groups of found events, and the totals of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.answers import Totals
from aggregates.asking.questions import AskedValue, HeldWindow
from aggregates.asking.ring import EventRing
from aggregates.asking.values import NULL, ValueCodes, numbers_in
from aggregates.errors import QuestionRefused
from aggregates.kernels.asking import NIL, group_rows, sum_rows

MOST_GROUPS = 100_000
"""The most groups of an answer, and the most pairs of a group and a distinct value that an answer may collect."""

_TABLE = 4_096  # places of the first hash table of groups
_DIRECT = 65_536  # most combinations of codes for which each has its own place in the table


@dataclass(frozen=True, slots=True)
class Grouped:
    """Found events divided into groups: the index of each group's first event, and the group of each event."""

    firsts: NDArray[np.int64]
    groups: NDArray[np.int32]


class GroupTotals:
    """Computes the groups and values of a question from the events that the index has found.

    ``slots`` are the places of these events in the ring. ``by`` are the indexes of the attributes that form groups.
    """

    def __init__(
        self, window: HeldWindow, ring: EventRing, values: Sequence[ValueCodes], slots: NDArray[np.int32], by: list[int]
    ) -> None:
        self._window, self._ring, self._values, self._slots, self._by = window, ring, values, slots, by
        self._grouped = (
            self._groups_of(by, "by") if by else Grouped(np.zeros(0, np.int64), np.zeros(len(slots), np.int32))
        )
        self._count = len(self._grouped.firsts) if by else 1
        self._sums: dict[str, tuple[NDArray[Any], ...]] = {}

    def groups(self) -> list[tuple[Any, ...]]:
        """Return the attribute values of each group. Without attributes, there is one group, even without events."""
        if not self._by:
            return [()]
        return list(zip(*(self._texts(place, self._grouped.firsts) for place in self._by), strict=True))

    def of(self, name: str, value_wanted: AskedValue) -> Totals:
        """Return the partial results of the value ``name`` for all groups.

        A sum or mean has three lists, others have one.
        """
        if value_wanted.function == "distinct":
            return self._distinct(self._window.attributes.index(str(value_wanted.attribute)), f"values.{name}")
        if value_wanted.function == "count":
            return [self._counts(value_wanted.attribute).tolist()]
        counts, sums, extremes = self._summed(str(value_wanted.attribute))
        if value_wanted.function in ("sum", "avg"):
            return [counts.tolist(), *sums.T.tolist()]
        extreme = extremes[:, 0 if value_wanted.function == "min" else 1].tolist()
        return [[value if count else None for value, count in zip(extreme, counts.tolist(), strict=True)]]

    def _counts(self, attribute: str | None) -> NDArray[np.int64]:
        groups = self._grouped.groups
        if attribute is not None and attribute not in self._window.attributes:
            return self._summed(attribute)[0]
        if attribute is not None:
            place = self._window.attributes.index(attribute)
            groups = groups[self._ring.rows[self._slots, place + 1] != NULL]
        return np.bincount(groups, minlength=self._count)

    def _summed(self, measure: str) -> tuple[NDArray[Any], ...]:
        """Return, by group, the number of values, the sum with its rounding error, and the least and greatest value."""
        if measure not in self._sums:
            counts, sums = np.zeros(self._count, np.int64), np.zeros((self._count, 2))
            extremes = np.full((self._count, 2), (np.inf, -np.inf))
            sum_rows(*self._numbers(measure), self._grouped.groups, counts, sums, extremes)
            self._sums[measure] = counts, sums, extremes
        return self._sums[measure]

    def _numbers(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the numeric values of a measure or attribute, and the index of each event's value among them.

        The events are those of the question. A value that is not a number is NaN.
        """
        if name in self._window.measures:
            return self._ring.values[self._window.measures.index(name)], self._slots
        place = self._window.attributes.index(name)
        codes, known = self._ring.rows[self._slots, place + 1], self._values[place].values
        is_used, numbers = np.zeros(len(known), np.bool_), np.full(len(known), np.nan)
        is_used[codes] = True
        numbers[is_used] = numbers_in([known[code] for code in np.flatnonzero(is_used).tolist()])
        return numbers, codes

    def _distinct(self, place: int, member: str) -> Totals:
        """Return the distinct values of the attribute with index ``place`` in each group."""
        pairs = self._groups_of([*self._by, place], member)
        distinct_values: list[list[Any]] = [[] for _ in range(self._count)]
        owners = self._grouped.groups[pairs.firsts].tolist()
        for owner, value in zip(owners, self._texts(place, pairs.firsts), strict=True):
            if value is not None:
                distinct_values[owner].append(value)
        return [distinct_values]

    def _texts(self, place: int, firsts: NDArray[np.int64]) -> list[Any]:
        values = self._values[place].values
        return [values[code] for code in self._ring.rows[self._slots[firsts], place + 1].tolist()]

    def _groups_of(self, by: Sequence[int], member: str) -> Grouped:
        groups = np.empty(len(self._slots), np.int32)
        sizes = [len(self._values[place]) for place in by]
        is_direct = prod(sizes) <= _DIRECT
        room = prod(sizes) if is_direct else _TABLE
        while True:
            table, firsts = np.full(room, NIL, np.int32), np.empty(room if is_direct else room // 2, np.int64)
            columns = np.array(by, np.int64) + 1
            count = group_rows(self._ring.rows, self._slots, columns, np.array(sizes, np.int64), table, firsts, groups)
            if max(count, len(firsts) if count == NIL else 0) > MOST_GROUPS:
                raise QuestionRefused(
                    f"{member}: the answer has more than {MOST_GROUPS:,} groups; ask with 'where', with fewer "
                    "attributes in 'by', or over a shorter window",
                    field=member,
                )
            if count != NIL:
                return Grouped(firsts[:count], groups)
            room *= 8
