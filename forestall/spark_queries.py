"""``forestall.sql`` over DataFrames of Spark: tasks search whole partitions of PARTITION BY."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from forestall.errors import FrameRefused
from nfa import QueryShape, run_query

Batches = Iterator[pa.RecordBatch]


def sql_on_spark(rows: Any, query: str, shape: QueryShape, max_steps: int | None) -> Any:
    """The result of a query over a DataFrame of Spark, which Spark computes when it is needed.

    Raises:
        FrameRefused: The query has no PARTITION BY, or orders or limits its result.
        ForestallError: The query does not fit the columns.
    """
    if not shape.partition:
        raise FrameRefused("a query over rows of Spark needs PARTITION BY, by which tasks divide them")
    if shape.is_whole:
        raise FrameRefused("over rows of Spark, leave out ORDER BY and LIMIT; order and limit the result with Spark")
    empty = run_query(query, lambda _: rows.limit(0).toArrow(), max_steps=max_steps)
    schema = rows.sparkSession.createDataFrame(empty).schema
    return rows.repartition(*shape.partition).mapInArrow(partial(_search, query, max_steps), schema)


def _search(query: str, max_steps: int | None, batches: Batches) -> Batches:
    """The result over the rows of a task."""
    parts = list(batches)
    if sum(map(len, parts)):
        table = pa.Table.from_batches(parts)
        yield from run_query(query, lambda _: table, max_steps=max_steps).to_batches()
