"""Times and intervals of conditions between rows as whole numbers, which kernels compare, add and subtract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.errors import PatternRefused
from nfa.sql.table import microseconds_of, unit_of
from nfa.syntax import NOWHERE, Position

_RESERVED = 2**40
_MOST_NANOSECONDS = 2**63 - 1 - _RESERVED
"""The largest number of nanoseconds. Larger numbers represent, in order, values that do not fit into int64."""


@dataclass
class TimeNumbers:
    """The times and intervals in columns and constants, in groups.

    Values that conditions compare or add are in one group. A group is in nanoseconds if one of its columns has
    nanoseconds, and otherwise in microseconds. A number of nanoseconds that is too large for int64 is replaced by a
    number that compares alike. In sums, it is refused.
    """

    columns: list[Any] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    added: dict[int, Position] = field(default_factory=dict)

    def add(self, column: Any, position: Position = NOWHERE) -> int:
        """Add a column in a group of its own, and return the column's index."""
        self.columns.append(column)
        self.positions.append(position)
        self.groups.append(len(self.groups))
        return len(self.groups) - 1

    def link(self, indices: Sequence[int], added_at: Position | None = None) -> None:
        """Join the groups of columns that are compared or added. ``added_at`` is the position of a sum, if any."""
        roots = {self._root(index) for index in indices}
        for root in roots:
            self.groups[root] = min(roots)
        if added_at is not None:
            for index in indices:
                self.added.setdefault(index, added_at)

    def _root(self, index: int) -> int:
        while self.groups[index] != index:
            self.groups[index] = self.groups[self.groups[index]]
            index = self.groups[index]
        return index

    @cached_property
    def numbers(self) -> list[NDArray[np.int64]]:
        """The values of each column as numbers. Null becomes 0. All conditions must have been compiled before."""
        members: dict[int, list[int]] = {}
        for index in range(len(self.columns)):
            members.setdefault(self._root(index), []).append(index)
        numbers: dict[int, NDArray[np.int64]] = {}
        for group in members.values():
            numbers.update(self._numbers_of(group))
        return [numbers[index] for index in range(len(self.columns))]

    def _numbers_of(self, group: list[int]) -> dict[int, NDArray[np.int64]]:
        parts = {index: microseconds_of(self.columns[index], self.positions[index]) for index in group}
        if unit_of(self.columns[index] for index in group) == "us":
            return {index: values for index, (values, _) in parts.items()}
        most = _MOST_NANOSECONDS // 1_000
        is_large = {index: (values < -most) | (values >= most) for index, (values, _) in parts.items()}
        for index in group:
            if index in self.added and is_large[index].any():
                raise _refusal(self.added[index])
        large = np.unique(np.concatenate([values[is_large[index]] for index, (values, _) in parts.items()]))
        numbers = {}
        for index, (values, rest) in parts.items():
            places = np.searchsorted(large, values) * 1_000
            replaced = np.where(values < 0, -(2**63) + 1, _MOST_NANOSECONDS) + places
            numbers[index] = np.where(is_large[index], replaced, np.where(is_large[index], 0, values) * 1_000) + rest
        return numbers


def _refusal(position: Position) -> PatternRefused:
    problem = (
        "beside a column with nanoseconds, times from the end of 1677 to the start of 2262 and intervals of up to 292 "
        "years can be added and subtracted in a condition between rows; here a value is outside"
    )
    return PatternRefused("overflow", problem, position)
