"""Queries with MATCH_RECOGNIZE over Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nfa.sql.matching import MOST_STEPS, search
from nfa.sql.measures import Output, output_of
from nfa.sql.operations import column_of
from nfa.sql.parsing import parse_query
from nfa.sql.resolving import Columns, resolve_clause, resolve_output
from nfa.sql.syntax import Clause, Column, Expression, Sort, SqlQuery
from nfa.sql.table import SortedTable, sorted_table, whole


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The table that a query reads, and how the query may be divided.

    Attributes:
        table: The table that the query reads.
        partition: The columns of PARTITION BY.
        is_whole: Whether ORDER BY or LIMIT need the results of all partitions.
    """

    table: str
    partition: tuple[str, ...]
    is_whole: bool


def query_shape(text: str) -> QueryShape:
    """The shape of a query; ``PatternRefused``, with position and advice, if the text cannot be read."""
    query = parse_query(text)
    columns = tuple(sort.column for sort in query.clause.partition)
    return QueryShape(query.table, columns, bool(query.ordering) or query.limit is not None)


def run_query(text: str, read: Callable[[str], pa.Table], *, max_steps: int | None = None) -> pa.Table:
    """Run a query; ``read`` returns the table of a name, ``max_steps`` bounds the search in one partition.

    ``PatternRefused`` if the text cannot be read or does not fit the table; ``RowPatternFailed`` as ``search``.
    """
    query = parse_query(text)
    return _selected(query, run_clause(query.clause, read(query.table), max_steps or MOST_STEPS))


def run_clause(clause: Clause, table: pa.Table, max_steps: int) -> pa.Table:
    """Run a MATCH_RECOGNIZE clause over a table."""
    resolved = resolve_clause(clause, table.column_names)
    in_order = sorted_table(table, resolved.partition, resolved.order)
    return _shown(resolved, in_order, output_of(resolved, in_order, search(resolved, in_order, max_steps)))


def _shown(clause: Clause, table: SortedTable, output: Output) -> pa.Table:
    """The columns of the result of a clause, in the order of the standard."""
    rows = pa.array(output.rows)
    shown = [(one.column, table.column(one.column).take(rows)) for one in clause.partition]
    measures = [(one.name, output.measure(one.expression)) for one in clause.measures]
    if clause.rows == "one":
        return _as_table([*shown, *measures])
    of_order = [(one.column, table.column(one.column).take(rows)) for one in clause.order]
    known = {one.column for one in (*clause.partition, *clause.order)}
    others = [(name, table.column(name).take(rows)) for name in table.table.column_names if name not in known]
    return _as_table([*shown, *of_order, *measures, *others])


def _as_table(columns: Sequence[tuple[str, Any]]) -> pa.Table:
    return pa.Table.from_arrays([column for _, column in columns], names=[name for name, _ in columns])


def _selected(query: SqlQuery, found: pa.Table) -> pa.Table:
    """Apply the query around the clause to the result of the clause."""
    columns = Columns(found.column_names)

    def value(expression: Expression, table: pa.Table) -> Any:
        def read(one: Expression) -> Any:
            assert isinstance(one, Column)
            return whole(table.column(table.column_names.index(one.name)))

        return column_of(resolve_output(expression, columns, query.alias), read, table.num_rows)

    if query.where is not None:
        found = found.filter(pc.fill_null(value(query.where, found), False))
    if query.ordering:
        keys = [value(one.expression, found) for one in query.ordering]
        sorts = [Sort(str(place), one.is_descending, one.are_nulls_first) for place, one in enumerate(query.ordering)]
        in_order = sorted_table(_as_table([(str(place), key) for place, key in enumerate(keys)]), (), sorts)
        if in_order.order is not None:
            found = found.take(pa.array(in_order.order))
    if query.limit is not None:
        found = found.slice(0, query.limit)
    if query.outputs is None:
        return found
    return _as_table([(one.name, value(one.expression, found)) for one in query.outputs])
