"""``forestall.sql``: SQL with MATCH_RECOGNIZE over tables. On Spark, each task searches whole partitions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from forestall.errors import FrameRefused
from forestall.frames import is_spark, read_frame
from nfa import QueryShape, query_shape, run_query


def sql(query: str, /, *, max_steps: int | None = None, **tables: Any) -> Any:
    """Run a query with MATCH_RECOGNIZE.

    Args:
        query: ``SELECT … FROM name MATCH_RECOGNIZE (…)``. WHERE, ORDER BY and LIMIT may follow, for the result.
        max_steps: Steps that the search may take in one partition (default: a billion). If it needs more, the call
            fails.
        tables: Tables by their name in the query: lists of dictionaries, DataFrames of pandas, polars
        or Spark, tables or datasets of Arrow, relations of DuckDB.

    Returns:
        The result, as a frame of the same kind as the table that the query reads.

    Raises:
        ForestallError: The query or table is refused, and the message names the faulty place. Or the search takes too
        many steps.
    """
    shape = query_shape(query)
    table_name = next((name for name in tables if name.lower() == shape.table.lower()), None)
    if table_name is None:
        passed_names = ", ".join(tables) or "none"
        raise FrameRefused(
            f"the query reads {shape.table}; pass it by name, as {shape.table}=...; given: {passed_names}"
        )
    if is_spark(tables[table_name]):
        return _on_spark(tables[table_name], query, shape, max_steps)
    frame = read_frame(tables[table_name])
    return frame.back(run_query(query, lambda _: frame.table, max_steps=max_steps))


def _on_spark(rows: Any, query: str, shape: QueryShape, max_steps: int | None) -> Any:
    """Run a query over a Spark DataFrame. Spark computes the result lazily."""
    if not shape.partition:
        raise FrameRefused("a query over rows of Spark needs PARTITION BY, by which tasks divide them")
    if shape.is_whole:
        raise FrameRefused("over rows of Spark, leave out ORDER BY and LIMIT; order and limit the result with Spark")
    empty = run_query(query, lambda _: rows.limit(0).toArrow(), max_steps=max_steps)
    schema = rows.sparkSession.createDataFrame(empty).schema
    return rows.repartition(*shape.partition).mapInArrow(partial(_search, query, max_steps), schema)


def _search(query: str, max_steps: int | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = list(batches)
    if sum(map(len, parts)):
        table = pa.Table.from_batches(parts)
        yield from run_query(query, lambda _: table, max_steps=max_steps).to_batches()
