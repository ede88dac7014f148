"""``forestall.sql``: SQL with MATCH_RECOGNIZE over tables, in this process."""

from __future__ import annotations

from typing import Any

from forestall.errors import FrameRefused
from forestall.frames import is_spark, read_frame
from forestall.spark_queries import sql_on_spark
from nfa import query_shape, run_query


def sql(query: str, /, *, max_steps: int | None = None, **tables: Any) -> Any:
    """Run a query with MATCH_RECOGNIZE.

    Args:
        query: ``SELECT … FROM name MATCH_RECOGNIZE (…)``, with WHERE, ORDER BY and LIMIT of the result.
        max_steps: Steps that the search may take in one partition (default: a billion); with more the call fails.
        tables: The tables by the names that the query uses: lists of dictionaries, DataFrames of pandas, polars
            or Spark, tables or datasets of Arrow, relations of DuckDB.

    Returns:
        The result, in the form of the table that the query reads.

    Raises:
        ForestallError: The query or the table is refused, or the search takes too many steps; the message names the
            place.
    """
    shape = query_shape(query)
    found = next((one for one in tables if one.lower() == shape.table.lower()), None)
    if found is None:
        given = ", ".join(tables) or "none"
        raise FrameRefused(f"the query reads {shape.table}; pass it by name, as {shape.table}=...; given: {given}")
    if is_spark(tables[found]):
        return sql_on_spark(tables[found], query, shape, max_steps)
    frame = read_frame(tables[found])
    return frame.back(run_query(query, lambda _: frame.table, max_steps=max_steps))
