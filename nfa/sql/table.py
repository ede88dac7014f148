"""The input of a clause: the columns of a table, with its rows sorted within partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa.errors import PatternRefused
from nfa.kernels.row_patterns.sorting import group_rows
from nfa.sql.operations import column_of, without_nan
from nfa.sql.syntax import Column, Expression, Sort
from nfa.syntax import NOWHERE, Position

_WHOLE = (pa.types.is_temporal, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)


@dataclass
class SortedTable:
    """The rows of a table in the order of the search: by partition, and sorted within each partition.

    Equal rows keep their order. ``order`` has each row's index in the input, or is None if the input is already in this
    order.
    """

    table: pa.Table
    order: NDArray[np.int64] | None
    bounds: NDArray[np.int64]
    _columns: dict[str, Any] = field(default_factory=dict)
    _neighbours: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def column(self, name: str) -> Any:
        """Return a column in the order of the search."""
        if name not in self._columns:
            column = whole(self.table.column(name))
            self._columns[name] = column if self.order is None else column.take(pa.array(self.order))
        return self._columns[name]

    @cached_property
    def partition_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Two arrays: for each row, the first row of its partition, and the first row after its partition."""
        sizes = np.diff(self.bounds)
        return np.repeat(self.bounds[:-1], sizes), np.repeat(self.bounds[1:], sizes)

    def neighbours(self, distance: int) -> NDArray[np.int64]:
        """Return, for each row, the row ``distance`` rows after it in its partition, or -1 if there is none."""
        if distance not in self._neighbours:
            starts, ends = self.partition_ends
            rows = np.arange(self.size) + distance
            self._neighbours[distance] = np.where((rows >= starts) & (rows < ends), rows, -1)
        return self._neighbours[distance]

    def values(self, expression: Expression, rows: NDArray[np.int64] | None = None) -> Any:
        """Return the values of an expression for each of ``rows``, by default for all rows.

        The columns of a missing row, -1, are null.
        """
        size = self.size if rows is None else len(rows)
        indices = None if rows is None else pa.array(rows, mask=rows < 0)

        def read(leaf: Expression) -> Any:
            assert isinstance(leaf, Column)
            column = self.column(leaf.name)
            return column if indices is None else column.take(indices)

        return column_of(expression, read, size)


def sorted_table(table: pa.Table, partition: Sequence[Sort], order: Sequence[Sort]) -> SortedTable:
    """Sort a table. Partitions are in the order of their first rows in the input."""
    codes, size = _codes(table, partition), table.num_rows
    keys = [key for sort in reversed(order) for key in _keys(table.column(sort.column), sort)]
    places = None if _is_sorted(keys) else np.lexsort(keys)
    if codes is None:
        return SortedTable(table, places, np.array([0, size] if size else [0], np.int64))
    sizes = np.bincount(codes)
    bounds = np.append(0, np.cumsum(sizes)).astype(np.int64)
    if places is None and bool((codes[:-1] <= codes[1:]).all()):
        return SortedTable(table, None, bounds)
    rows = np.arange(size) if places is None else places
    grouped = np.empty(size, np.int64)
    group_rows(codes, rows, bounds[:-1].copy(), grouped)
    return SortedTable(table, grouped, bounds)


def _codes(table: pa.Table, partition: Sequence[Sort]) -> NDArray[np.int32] | None:
    """Number the partitions in the order of their first rows. Without PARTITION BY, return None."""
    if not partition:
        return None
    codes = np.zeros(table.num_rows, np.int32)
    for sort in partition if table.num_rows else ():
        column = _sortable(whole(table.column(sort.column)), sort)
        indices = _numbers(pc.dictionary_encode(column, null_encoding="encode").indices)
        if sort is not partition[0]:
            pairs = pa.array(codes.astype(np.int64) * (int(indices.max(initial=0)) + 1) + indices)
            indices = _numbers(pairs.dictionary_encode().indices)
        codes = np.require(indices, np.int32, ["C", "W"])
    return codes


def _numbers(column: Any) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _sortable(column: Any, sort: Sort) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return without_nan(column.cast(kind.value_type))
    if pa.types.is_nested(kind):
        raise PatternRefused("type", f"{sort.column} has lists or objects, which have no order", sort.position)
    return column


def _keys(column: Any, sort: Sort) -> list[NDArray[Any]]:
    """Return sort keys in the order of ``numpy.lexsort``: the most significant array is the last one."""
    sortable = _sortable(whole(column), sort)
    if pa.types.is_interval(sortable.type):
        raise PatternRefused("type", f"{sort.column} has intervals of months, which have no order", sort.position)
    if any(test(sortable.type) for test in _WHOLE):
        values = _stored_integers(sortable)
        values = ~values if sort.is_descending else values
    elif pa.types.is_floating(sortable.type):
        values = sortable.fill_null(0.0).to_numpy()
        values = -values if sort.is_descending else values
    else:
        values = _numbers(pc.rank(sortable, tiebreaker="dense"))
        values = -values if sort.is_descending else values
    if sortable.null_count == 0:
        return [values]
    nulls = np.asarray(pc.is_null(sortable).to_numpy(zero_copy_only=False), np.int8)
    return [np.where(nulls, 0, values), -nulls if sort.are_nulls_first else nulls]


def _stored_integers(column: Any) -> NDArray[Any]:
    """Return a column as integers, with 0 for null. Times and durations are in the unit of their type."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return np.asarray((column.fill_null(0) if column.null_count else column).to_numpy())


def whole(column: Any) -> Any:
    """Return a column of a table as one array, with null in place of NaN."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            return pa.nulls(0, column.type)
        column = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.unify_dictionaries().chunks)
    return without_nan(column)


def unit_of(columns: Iterable[Any]) -> str:
    """Return the unit in which all times and durations are exact: "ns" if some have nanoseconds, else "us"."""
    return "ns" if any(map(_has_nanoseconds, columns)) else "us"


def _has_nanoseconds(column: Any) -> bool:
    return getattr(column.type, "unit", None) == "ns" and bool((_stored_integers(column) % 1_000).any())


def microseconds_of(column: Any, position: Position) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return times or durations as whole microseconds, rounded down, and the remaining nanoseconds. Null becomes 0.

    Raises:
        PatternRefused: A value is outside the range of int64.
    """
    if getattr(column.type, "unit", None) == "ns":
        whole_ones, rest = np.divmod(_stored_integers(column), 1_000)
        return whole_ones, rest
    values = integers_of(column, "us", position)
    return values, np.zeros_like(values)


def integers_of(column: Any, unit: str = "us", position: Position = NOWHERE) -> NDArray[np.int64]:
    """Return a column of whole numbers, booleans, times or durations as int64. Times and durations are in ``unit``.

    Null becomes 0.

    Raises:
        PatternRefused: A value is outside the range of int64.
    """
    kind = column.type
    target = pa.int64()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        target = pa.timestamp(unit, getattr(kind, "tz", None))
    elif pa.types.is_duration(kind):
        target = pa.duration(unit)
    try:
        column = column.cast(target)
    except pa.ArrowInvalid as error:
        raise PatternRefused("overflow", f"a value of a column is too large ({error})", position) from error
    return np.asarray(_stored_integers(column), np.int64)


def _is_sorted(keys: Sequence[NDArray[Any]]) -> bool:
    """Check whether rows are sorted by ``keys``, of which the last is the most significant."""
    if not keys or len(keys[0]) < 2:
        return True
    is_settled = np.zeros(len(keys[0]) - 1, np.bool_)
    for key in reversed(keys):
        before, after = key[:-1], key[1:]
        if (before > after)[~is_settled].any():
            return False
        is_settled |= before < after
    return True
