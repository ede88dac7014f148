"""Queries with MATCH_RECOGNIZE over Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nfa.errors import PatternRefused
from nfa.sql.matching import MOST_STEPS, search
from nfa.sql.measures import Output, output_of
from nfa.sql.operations import column_of
from nfa.sql.parsing import parse_query
from nfa.sql.resolving import Columns, resolve_clause, resolve_output
from nfa.sql.syntax import Clause, Column, Constant, Expression, Name, Named, Ordering, Sort, SqlQuery, walk
from nfa.sql.table import SortedTable, sorted_table, whole


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The table that a query reads, and how the query may be divided.

    Attributes:
        partition: The columns of PARTITION BY.
        is_whole: Whether ORDER BY or LIMIT needs the results of all partitions.
    """

    table: str
    partition: tuple[str, ...]
    is_whole: bool


def query_shape(text: str) -> QueryShape:
    """Return the shape of a query.

    Raises:
        PatternRefused: The text cannot be read. The error has its position and advice.
    """
    query = parse_query(text)
    columns = tuple(sort.column for sort in query.clause.partition)
    return QueryShape(query.table, columns, bool(query.ordering) or query.limit is not None)


def run_query(text: str, read: Callable[[str], pa.Table], *, max_steps: int | None = None) -> pa.Table:
    """Run a query and return the result as a table.

    ``read`` returns the table with a given name. ``max_steps`` limits the search in each partition.

    Raises:
        PatternRefused: The text cannot be read, or does not fit the table.
        RowPatternFailed: The search fails; see ``search``.
    """
    query = parse_query(text)
    table = read(query.table)
    clause = resolve_clause(query.clause, table.column_names)
    ambiguous = _ambiguous(clause, table.column_names)
    if query.outputs is None and ambiguous:
        raise next(iter(ambiguous.values()))
    in_order = sorted_table(table, clause.partition, clause.order)
    output = output_of(clause, in_order, search(clause, in_order, max_steps or MOST_STEPS))
    return _selected(query, _result_table(clause, in_order, output), ambiguous)


def _result_table(clause: Clause, table: SortedTable, output: Output) -> pa.Table:
    """Return the result of a clause as a table, with the columns in the order that the standard defines."""
    rows = pa.array(output.rows)
    partition_columns = [(sort.column, table.column(sort.column).take(rows)) for sort in clause.partition]
    measures = [(measure.name, output.measure(measure.expression)) for measure in clause.measures]
    if clause.rows == "one":
        return _as_table([*partition_columns, *measures])
    order_columns = [(sort.column, table.column(sort.column).take(rows)) for sort in clause.order]
    sort_names = {sort.column for sort in (*clause.partition, *clause.order)}
    other_columns = [
        (name, table.column(name).take(rows)) for name in table.table.column_names if name not in sort_names
    ]
    return _as_table([*partition_columns, *order_columns, *measures, *other_columns])


def _ambiguous(clause: Clause, names: Sequence[str]) -> dict[str, PatternRefused]:
    """Return the names that a measure shares with another column, each with the error for queries that use the name."""
    origins: dict[str, str] = {}
    if clause.rows != "one":
        origins = dict.fromkeys(names, "a column of the table")
        origins |= {sort.column: "a column of ORDER BY" for sort in clause.order}
    origins |= {sort.column: "a column of PARTITION BY" for sort in clause.partition}
    refusals: dict[str, PatternRefused] = {}
    for place, measure in enumerate(clause.measures, start=1):
        name, origin = measure.name, f"measure {place}"
        if (earlier := origins.setdefault(name, origin)) != origin:
            message = f"{earlier} and {origin} are both called {name}; give the measure another name with AS"
            refusals.setdefault(name, PatternRefused("duplicate", message, measure.position))
    return refusals


def _as_table(columns: Sequence[tuple[str, Any]]) -> pa.Table:
    return pa.Table.from_arrays([column for _, column in columns], names=[name for name, _ in columns])


def _sort_key(
    ordering: Ordering, query: SqlQuery, columns: Columns, selected: Sequence[tuple[str, Expression]]
) -> Expression:
    """Return the expression by which an ORDER BY item sorts.

    A whole number is the position of a SELECT column, from 1. A name is that of a SELECT column first.
    """
    match ordering.expression:
        case Constant(value=int(place)) if not isinstance(place, bool):
            if 1 <= place <= len(selected):
                return selected[place - 1][1]
            raise PatternRefused(
                "order",
                f"ORDER BY {place} is not a column of SELECT; write a number from 1 to {len(selected)}, or a name",
                ordering.position,
            )
        case expression if any(isinstance(part, Name) for part in walk(expression)):
            return resolve_output(expression, columns, query.alias, dict(selected))
    raise PatternRefused("order", "ORDER BY has a constant, which orders nothing; write a column", ordering.position)


def _selected(query: SqlQuery, matches: pa.Table, ambiguous: Mapping[str, PatternRefused]) -> pa.Table:
    columns = Columns(matches.column_names)
    outputs = query.outputs or [Named(name, Name(name)) for name in matches.column_names]
    selected = [(output.name, resolve_output(output.expression, columns, query.alias)) for output in outputs]

    def value(expression: Expression) -> Any:
        def read(leaf: Expression) -> Any:
            assert isinstance(leaf, Column)
            if leaf.name in ambiguous:
                raise ambiguous[leaf.name]
            return whole(matches.column(matches.column_names.index(leaf.name)))

        return column_of(expression, read, matches.num_rows)

    if query.where is not None:
        matches = matches.filter(pc.fill_null(value(resolve_output(query.where, columns, query.alias)), False))
    if query.ordering:
        keys = [value(_sort_key(ordering, query, columns, selected)) for ordering in query.ordering]
        sorts = [
            Sort(str(place), ordering.is_descending, ordering.are_nulls_first)
            for place, ordering in enumerate(query.ordering)
        ]
        in_order = sorted_table(_as_table([(str(place), key) for place, key in enumerate(keys)]), (), sorts)
        if in_order.order is not None:
            matches = matches.take(pa.array(in_order.order))
    if query.limit is not None:
        matches = matches.slice(0, query.limit)
    return matches if query.outputs is None else _as_table([(name, value(key)) for name, key in selected])
