"""The output of a clause: its rows, and the measures over these rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa.errors import PatternRefused
from nfa.kernels.row_patterns.measures import fold_floats, fold_integers
from nfa.sql.conditions import FOLDED, kind_of
from nfa.sql.matching import Matches
from nfa.sql.operations import column_of, without_nan
from nfa.sql.syntax import Aggregate, At, Clause, Column, Expression, LabelOfRow, MatchNumber, Place
from nfa.sql.table import SortedTable, integers_of

_Lines = NDArray[np.int64]
_WITH_NULLS = ("array_agg", "max_by", "min_by")  # aggregates that treat nulls as values


@dataclass(frozen=True)
class Output:
    """The output rows of a clause, and the measures over them.

    Attributes:
        rows: For each output row, the table row that it shows.
        records: For each output row, its record (match or unmatched row).
        ends: For each output row, the exclusive end of the lines that running measures read. For a record without
            lines, this is the record's first line.
    """

    clause: Clause
    table: SortedTable
    matches: Matches
    rows: NDArray[np.int64]
    records: NDArray[np.int64]
    ends: _Lines

    @property
    def firsts(self) -> _Lines:
        return self.matches.firsts

    def measure(self, expression: Expression) -> Any:
        """Return the values of a measure on every output row. Unmatched rows have null."""
        values = column_of(expression, self._read, len(self.rows))
        is_match = self.matches.is_match[self.records]
        return values if is_match.all() else pc.if_else(pa.array(is_match), values, pa.scalar(None, values.type))

    def _read(self, expression: Expression) -> Any:
        match expression:
            case MatchNumber():
                return pa.array(self.matches.numbers[self.records])
            case At():
                return self._at(expression)
            case Aggregate():
                return without_nan(self._aggregate(expression))
        raise AssertionError(expression)

    def _ends(self, *, is_final: bool) -> _Lines:
        return (self.firsts + self.matches.lengths)[self.records] if is_final else self.ends

    def _at(self, expression: At) -> Any:
        targets = self._targets(expression.place)
        return self._values(expression.content, targets)

    def _targets(self, place: Place) -> NDArray[np.int64]:
        """Return, for each output row, the table row to which ``place`` refers, or -1 if there is no such row."""
        firsts, ends = self.firsts[self.records], self._ends(is_final=place.is_final)
        if place.labels is None:
            lines = firsts + place.offset if place.is_first else ends - 1 - place.offset
            is_present = (lines >= firsts) & (lines < ends)
        else:
            counts, places = self._ranks(place.labels)
            ranks = counts[firsts] + place.offset if place.is_first else counts[ends] - 1 - place.offset
            is_present = (ranks >= counts[firsts]) & (ranks < counts[ends])
            lines = np.full(len(ranks), -1)
            lines[is_present] = places[ranks[is_present]]
        rows = np.full(len(lines), -1)
        rows[is_present] = self.matches.lines[lines[is_present]]
        return self._moved(rows, place.physical) if place.physical else rows

    def _ranks(self, labels: frozenset[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of lines with one of the labels before each line, and the indices of these lines."""
        mask = self._label_mask(labels)
        return np.append(0, np.cumsum(mask)), np.flatnonzero(mask)

    def _label_mask(self, labels: frozenset[int] | None) -> NDArray[np.bool_]:
        """Return a mask of the lines with one of the labels, or of all lines if ``labels`` is None."""
        is_chosen = np.array([labels is None or label in labels for label in range(len(self.clause.variables))])
        return is_chosen[self.matches.labels]

    def _moved(self, rows: NDArray[np.int64], distance: int) -> NDArray[np.int64]:
        """Return, for each of ``rows``, the row at a distance in the same partition, or -1 if there is no such row."""
        if not self.table.size:
            return rows
        return np.where(rows >= 0, self.table.neighbours(distance)[rows], -1)

    def _values(self, expression: Expression, rows: NDArray[np.int64]) -> Any:
        """Return, for each output row, the value of an expression over the table row whose index is in ``rows``."""
        indices = pa.array(rows, mask=rows < 0)

        def read(leaf: Expression) -> Any:
            if isinstance(leaf, LabelOfRow):
                return self._labels(rows)
            assert isinstance(leaf, Column)
            return self.table.column(leaf.name).take(indices)

        return column_of(expression, read, len(rows))

    def _labels(self, rows: NDArray[np.int64]) -> Any:
        """Return the labels of rows in the match of each output row, or null for rows outside the match."""
        places = rows - self.matches.starts[self.records]
        is_present = (rows >= 0) & (places >= 0) & (places < self.matches.lengths[self.records])
        lines = np.where(is_present, self.firsts[self.records] + places, 0)
        labels = self.matches.labels[lines] if len(self.matches.labels) else np.zeros(len(rows), np.int32)
        return pa.array(self.clause.variables).take(pa.array(labels, mask=~is_present))

    def _aggregate(self, aggregate: Aggregate) -> Any:
        mask = self._label_mask(aggregate.labels)
        operands = [self._of_lines(operand) for operand in aggregate.operands]
        if operands and aggregate.name not in _WITH_NULLS:
            mask &= np.asarray(operands[0].is_valid().to_numpy(zero_copy_only=False))
        ends = self._ends(is_final=aggregate.is_final)
        kind = kind_of(operands[0].type) if operands else "integer"
        is_number = kind in ("integer", "float", "null") or (kind in ("time", "interval") and aggregate.name != "avg")
        if aggregate.name in FOLDED and not aggregate.is_distinct and (is_number or aggregate.name == "count"):
            return self._folded(aggregate, operands[0] if operands else None, mask, ends)
        return self._listed(aggregate, operands, mask, ends)

    def _of_lines(self, expression: Expression) -> Any:
        """Return the values of an expression over one row, on every line."""
        rows = pa.array(self.matches.lines)

        def read(leaf: Expression) -> Any:
            match leaf:
                case LabelOfRow():
                    return pa.array(self.clause.variables).take(pa.array(self.matches.labels))
                case MatchNumber():
                    return pa.array(self.matches.numbers[self.matches.records])
            assert isinstance(leaf, Column)
            return self.table.column(leaf.name).take(rows)

        return column_of(expression, read, len(self.matches.lines))

    def _folded(self, aggregate: Aggregate, operand: Any, mask: NDArray[np.bool_], ends: _Lines) -> Any:
        """Return the values of an aggregate of numbers, which a kernel computes over the lines."""
        if aggregate.name == "count":
            counts = np.append(0, np.cumsum(mask))
            return pa.array(counts[ends] - counts[self.firsts[self.records]])
        kind = kind_of(operand.type)
        if kind == "time" and aggregate.name == "sum":
            raise PatternRefused("type", "sum adds numbers, not times", aggregate.position)
        count = np.zeros(len(mask), np.int64)
        firsts, function = self.firsts[self.matches.records], FOLDED[aggregate.name]
        values: NDArray[Any]
        if kind == "float":
            values = np.ascontiguousarray(operand.cast(pa.float64()).fill_null(0.0).to_numpy())
            values = values.copy()
            fold_floats(function, firsts, mask, values, count)
        else:
            values = integers_of(operand, _unit(operand.type), aggregate.position).copy()
            fold_integers(function, firsts, mask, values, count)
        is_present = ends > self.firsts[self.records]
        last = np.where(is_present, ends - 1, 0)
        if not len(values):  # so that the result has the same types as for a table with rows
            values, count = np.zeros(1, values.dtype), np.zeros(1, np.int64)
        is_present &= count[last] > 0
        if aggregate.name == "avg":
            return pa.array(values[last] / np.maximum(count[last], 1), mask=~is_present)
        return _typed(values[last], ~is_present, operand.type)

    def _listed(self, aggregate: Aggregate, operands: Sequence[Any], mask: NDArray[np.bool_], ends: _Lines) -> Any:
        """Return the values of an aggregate that needs lists of operand values.

        Each output row is computed separately.
        """
        function = _LISTED.get(("distinct " if aggregate.is_distinct else "") + aggregate.name)
        if function is None:
            reason = "DISTINCT of it" if aggregate.is_distinct else kind_of(operands[0].type)
            raise PatternRefused("aggregate", f"{aggregate.name} does not take {reason}", aggregate.position)
        lists = [operand.to_pylist() for operand in operands]
        places, counts = np.flatnonzero(mask), np.append(0, np.cumsum(mask))
        results = []
        for first, end in zip(self.firsts[self.records].tolist(), ends.tolist(), strict=True):
            lines = places[counts[first] : counts[end]].tolist()
            results.append(function(*([values[line] for line in lines] for values in lists)) if lines else None)
        if aggregate.name == "count":
            return pa.array([count or 0 for count in results], pa.int64())
        kind = operands[0].type
        return pa.array(results, pa.list_(kind) if aggregate.name == "array_agg" else kind)


def _extreme(choose: Callable[..., Any]) -> Callable[[list[Any], list[Any]], Any]:
    """Return a function that selects the value of the first operand where the second operand is extreme."""

    def extreme_value(values: list[Any], keys: list[Any]) -> Any:
        places = [place for place, key in enumerate(keys) if key is not None]
        return values[choose(places, key=lambda place: keys[place])] if places else None

    return extreme_value


_LISTED: Mapping[str, Callable[..., Any]] = {
    "array_agg": lambda values: values,
    "distinct array_agg": lambda values: list(dict.fromkeys(values)),
    "min": min,
    "max": max,
    "distinct min": min,
    "distinct max": max,
    "arbitrary": lambda values: values[0],
    "distinct arbitrary": lambda values: values[0],
    "distinct count": lambda values: len(set(values)),
    "distinct sum": lambda values: sum(dict.fromkeys(values)),
    "max_by": _extreme(max),
    "min_by": _extreme(min),
}


def _unit(kind: Any) -> str:
    """Return the unit of the times or durations of an aggregate: that of nanoseconds is kept."""
    return "ns" if getattr(kind, "unit", None) == "ns" else "us"


def _typed(values: NDArray[Any], is_null: NDArray[np.bool_], kind: Any) -> Any:
    """Convert a kernel's numbers to dates, times or durations if ``kind`` is one of these.

    Other numbers remain int64 or float64.
    """
    column = pa.array(values, mask=is_null)
    if pa.types.is_date(kind):
        return column.view(pa.timestamp("us")).cast(kind)
    if pa.types.is_timestamp(kind):
        return column.view(pa.timestamp(_unit(kind), kind.tz))
    return column.view(pa.duration(_unit(kind))) if pa.types.is_duration(kind) else column


def output_of(clause: Clause, table: SortedTable, matches: Matches) -> Output:
    """Build the output rows of a clause."""
    firsts = matches.firsts
    if clause.rows == "one":
        return Output(clause, table, matches, matches.starts, np.arange(len(firsts)), firsts + matches.lengths)
    # the shown lines of each record, and one row for each record without lines
    is_shown = ~matches.is_excluded
    alone = np.flatnonzero(matches.lengths == 0)
    all_records = np.concatenate([matches.records[is_shown], alone])
    rows = np.concatenate([matches.lines[is_shown], matches.starts[alone]])
    all_ends = np.concatenate([np.flatnonzero(is_shown) + 1, firsts[alone]])
    order = np.argsort(all_records, kind="stable")
    return Output(clause, table, matches, rows[order], all_records[order], all_ends[order])
