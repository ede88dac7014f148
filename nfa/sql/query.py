"""Queries with MATCH_RECOGNIZE over Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nfa.errors import PatternRefused
from nfa.sql.columns import column_of
from nfa.sql.matching import MOST_STEPS, search
from nfa.sql.measures import Output, output_of
from nfa.sql.parsing import parse_query
from nfa.sql.resolving import Columns, resolve_clause, resolve_output
from nfa.sql.syntax import Clause, Column, Expression, Sort, SqlQuery
from nfa.sql.table import SortedTable, sorted_table, whole


def run_query(text: str, tables: Mapping[str, pa.Table], *, max_steps: int = MOST_STEPS) -> pa.Table:
    """The result of a query over tables by name.

    Raises:
        PatternRefused: The text cannot be read, or does not fit the table; position and advice are in the message.
        QueryFailed: The search takes too many steps, or AFTER MATCH SKIP has no row to skip to.
    """
    return run_parsed(parse_query(text), tables, max_steps=max_steps)


def run_parsed(query: SqlQuery, tables: Mapping[str, pa.Table], *, max_steps: int = MOST_STEPS) -> pa.Table:
    """The result of a parsed query; see ``run_query``."""
    found = run_clause(query.clause, _table(query, tables), max_steps=max_steps)
    return _selected(query, found)


def run_clause(clause: Clause, table: pa.Table, *, max_steps: int = MOST_STEPS) -> pa.Table:
    """The result of a MATCH_RECOGNIZE clause over a table."""
    resolved = resolve_clause(clause, table.column_names)
    in_order = sorted_table(table, resolved.partition, resolved.order)
    return _shown(resolved, in_order, output_of(resolved, in_order, search(resolved, in_order, max_steps)))


def _table(query: SqlQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    for name, table in tables.items():
        if name.lower() == query.table.lower():
            return table
    known = ", ".join(tables) or "none"
    raise PatternRefused("table", f"there is no table {query.table}; there are: {known}", query.table_position)


def _shown(clause: Clause, table: SortedTable, output: Output) -> pa.Table:
    """The columns of the clause in the order of the standard."""
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
    """The rows and columns of the query around the clause."""
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
