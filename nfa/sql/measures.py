"""Computes the output of a clause: its rows, and the measures for each row."""

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
from nfa.sql.operations import column_of, plain, without_nan
from nfa.sql.syntax import Aggregate, At, Clause, Column, Expression, LabelOfRow, MatchNumber, Place
from nfa.sql.table import SortedTable, integers_of

_Lines = NDArray[np.int64]
_MAX_SUM = 2.0**63
_BY_RANK = (pa.types.is_decimal, pa.types.is_uint64)
_WITH_NULLS = ("array_agg", "max_by", "min_by")  # aggregates that treat nulls as values


@dataclass(frozen=True)
class Output:
    """The output rows of a clause, from which measures are computed.

    Attributes:
        rows: For each output row, the table row that it shows.
        records: For each output row, its record (match or unmatched row).
        ends: For each output row, the index after the last table row that running measures read. For a record without
            table rows, this is the record's first row.
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
        """Return the values of a measure for each output row. The value is null for unmatched rows."""
        if isinstance(expression, Aggregate):
            values = without_nan(self._aggregate(expression, is_whole=True))
        else:
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
        mask = self._label_mask(labels)
        return np.append(0, np.cumsum(mask)), np.flatnonzero(mask)

    def _label_mask(self, labels: frozenset[int] | None) -> NDArray[np.bool_]:
        is_chosen = np.array([labels is None or label in labels for label in range(len(self.clause.variables))])
        return is_chosen[self.matches.labels]

    def _moved(self, rows: NDArray[np.int64], distance: int) -> NDArray[np.int64]:
        if not self.table.size:
            return rows
        return np.where(rows >= 0, self.table.neighbours(distance)[rows], -1)

    def _values(self, expression: Expression, rows: NDArray[np.int64]) -> Any:
        indices = pa.array(rows, mask=rows < 0)

        def read(leaf: Expression) -> Any:
            if isinstance(leaf, LabelOfRow):
                return self._labels(rows)
            assert isinstance(leaf, Column)
            return self.table.column(leaf.name).take(indices)

        return column_of(expression, read, len(rows))

    def _labels(self, rows: NDArray[np.int64]) -> Any:
        """Return the label of each row as text, or null for rows outside the match of the output row."""
        places = rows - self.matches.starts[self.records]
        is_present = (rows >= 0) & (places >= 0) & (places < self.matches.lengths[self.records])
        lines = np.where(is_present, self.firsts[self.records] + places, 0)
        labels = self.matches.labels[lines] if len(self.matches.labels) else np.zeros(len(rows), np.int32)
        return pa.array(self.clause.variables).take(pa.array(labels, mask=~is_present))

    def _aggregate(self, aggregate: Aggregate, *, is_whole: bool = False) -> Any:
        """Return the values of an aggregate for each output row.

        Unless ``is_whole`` (the aggregate is the whole measure) or DISTINCT is set, ``min`` and ``max`` convert
        decimals to float64 and uint64 to int64.
        """
        mask = self._label_mask(aggregate.labels)
        operands = [self._of_lines(operand) for operand in aggregate.operands]
        if operands and aggregate.name not in _WITH_NULLS:
            mask &= np.asarray(operands[0].is_valid().to_numpy(zero_copy_only=False))
        if aggregate.is_distinct:
            mask = self._first_of_equals(aggregate, operands[0], mask)
        ends = self._ends(is_final=aggregate.is_final)
        kind = kind_of(operands[0].type) if operands else "integer"
        is_number = kind in ("integer", "float", "null") or (kind in ("time", "interval") and aggregate.name != "avg")
        is_exact = (is_whole or aggregate.is_distinct) and aggregate.name in ("min", "max")
        if is_exact and any(test(operands[0].type) for test in _BY_RANK):
            return self._folded_by_rank(aggregate, operands[0], mask, ends)
        if aggregate.name in FOLDED and (is_number or aggregate.name == "count"):
            return self._folded(aggregate, operands[0] if operands else None, mask, ends)
        return self._chosen(aggregate, operands, mask, ends)

    def _first_of_equals(self, aggregate: Aggregate, operand: Any, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if aggregate.name in ("max_by", "min_by"):
            raise PatternRefused("aggregate", f"{aggregate.name} does not take DISTINCT of it", aggregate.position)
        values = plain(operand)
        if pa.types.is_floating(values.type):
            values = pc.add(values.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        try:
            codes = pc.dictionary_encode(values, null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        except pa.ArrowNotImplementedError as error:
            kind = kind_of(operand.type)
            raise PatternRefused(
                "aggregate", f"{aggregate.name} does not take DISTINCT of {kind}", aggregate.position
            ) from error
        lines = np.flatnonzero(mask)
        keys = self.matches.records[lines] * (int(codes.max(initial=0)) + 1) + codes[lines]
        is_first = np.zeros(len(mask), np.bool_)
        is_first[lines[np.unique(keys, return_index=True)[1]]] = True
        return is_first

    def _of_lines(self, expression: Expression) -> Any:
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
        if aggregate.name == "count":
            counts = np.append(0, np.cumsum(mask))
            return pa.array(counts[ends] - counts[self.firsts[self.records]])
        kind = kind_of(operand.type)
        if kind == "time" and aggregate.name == "sum":
            raise PatternRefused("type", "sum adds numbers, not times", aggregate.position)
        is_present = ends > self.firsts[self.records]
        last = np.where(is_present, ends - 1, 0)
        values, count = self._running(aggregate, operand, mask, last[is_present])
        if not len(values):  # so that the result has the same types as for a table with rows
            values, count = np.zeros(1, values.dtype), np.zeros(1, np.int64)
        is_present &= count[last] > 0
        if aggregate.name == "avg":
            return pa.array(values[last] / np.maximum(count[last], 1), mask=~is_present)
        return _typed(values[last], ~is_present, operand.type)

    def _folded_by_rank(self, aggregate: Aggregate, operand: Any, mask: NDArray[np.bool_], ends: _Lines) -> Any:
        """Return the values of an aggregate of numbers that the kernel cannot hold.

        The kernel compares the ranks of the numbers instead, so the result is exact.
        """
        ranks = np.asarray(pc.rank(operand, tiebreaker="dense").to_numpy(zero_copy_only=False), np.int64)
        lines = np.zeros(int(ranks.max(initial=0)) + 1, np.int64)
        lines[ranks] = np.arange(len(ranks))
        return operand.take(pa.array(lines).take(self._folded(aggregate, pa.array(ranks), mask, ends)))

    def _running(
        self, aggregate: Aggregate, operand: Any, mask: NDArray[np.bool_], read: _Lines
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return, for each line, an aggregate and the number of values in it.

        The aggregate is over the lines of the match up to this line. ``read`` has the lines whose result is used. If
        the sum at one of these lines exceeds 64 bits, ``sum`` is refused, and ``avg`` uses floats.
        """
        firsts, function = self.firsts[self.matches.records], FOLDED[aggregate.name]
        count = np.zeros(len(mask), np.int64)
        if kind_of(operand.type) == "float":
            numbers = np.array(operand.cast(pa.float64()).fill_null(0.0).to_numpy())
            fold_floats(function, firsts, mask, numbers, count)
            return numbers, count
        values = integers_of(operand, _unit(operand.type), aggregate.position).copy()
        sums = values.astype(np.float64)
        fold_integers(function, firsts, mask, values, count)
        largest = float(np.abs(sums).max(initial=0.0)) * int(self.matches.lengths.max(initial=0))
        if aggregate.name not in ("sum", "avg") or largest < _MAX_SUM:
            return values, count
        fold_floats(function, firsts, mask, sums, count)
        is_wrapped = np.abs(sums - values) > _MAX_SUM  # a sum that wrapped is off by a multiple of 2**64
        if aggregate.name == "avg":
            return np.where(is_wrapped, sums, values), count
        if is_wrapped[read].any():
            raise PatternRefused(
                "overflow", f"sum fails: its result is too large, {_beyond(operand.type)}", aggregate.position
            )
        return values, count

    def _chosen(self, aggregate: Aggregate, operands: Sequence[Any], mask: NDArray[np.bool_], ends: _Lines) -> Any:
        places, counts = np.flatnonzero(mask), np.append(0, np.cumsum(mask))
        starts, stops = counts[self.firsts[self.records]], counts[ends]
        sizes = np.maximum(stops - starts, 0)
        if aggregate.name == "array_agg":
            offsets = np.append(0, np.cumsum(sizes))
            if offsets[-1] >= 2**31:
                raise PatternRefused("overflow", "array_agg fails: its result is too large", aggregate.position)
            rows = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
            values = operands[0].take(pa.array(places[rows]))
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=pa.array(sizes == 0))
        if aggregate.name == "arbitrary":
            lines = np.full(len(sizes), -1)
            lines[sizes > 0] = places[starts[sizes > 0]]
            return operands[0].take(pa.array(lines, mask=lines < 0))
        choose = _EXTREMES.get(aggregate.name)
        if choose is None:
            kind = kind_of(operands[0].type)
            raise PatternRefused("aggregate", f"{aggregate.name} does not take {kind}", aggregate.position)
        keys = _comparable(operands[-1])
        candidates = (
            [line for line in places[start:stop].tolist() if keys[line] is not None]
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        )
        try:
            chosen = [choose(lines, key=keys.__getitem__) if lines else None for lines in candidates]
        except TypeError as error:
            kind = kind_of(operands[-1].type)
            raise PatternRefused("aggregate", f"{aggregate.name} does not order {kind}", aggregate.position) from error
        return operands[0].take(pa.array(chosen, pa.int64()))


_EXTREMES: Mapping[str, Callable[..., Any]] = {"min": min, "max": max, "min_by": min, "max_by": max}


def _comparable(column: Any) -> list[Any]:
    if not pa.types.is_temporal(column.type) or pa.types.is_interval(column.type):
        return list(column.to_pylist())
    return list(column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_pylist())


def _unit(kind: Any) -> str:
    return "ns" if getattr(kind, "unit", None) == "ns" else "us"


def _beyond(kind: Any) -> str:
    """Return what the sum of a column of a type exceeds, and how to write a sum that does not."""
    if not pa.types.is_duration(kind):
        return "beyond 64 bits; avg(…) * count(…) gives it as a float"
    limit = "292 years in nanoseconds" if _unit(kind) == "ns" else "292,000 years in microseconds"
    return f"beyond {limit}; sum(to_milliseconds(…)) adds whole milliseconds"


def _typed(values: NDArray[Any], is_null: NDArray[np.bool_], kind: Any) -> Any:
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
