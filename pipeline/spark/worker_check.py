"""A check that Spark can start a Python process and exchange rows with it, without compiling anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

_ROWS = 3


def workers_answer(session: SparkSession) -> bool:
    """Check whether rows return unchanged from a Python process of Spark."""
    rows = session.range(0, _ROWS, numPartitions=1).mapInArrow(_echo, "id LONG").collect()
    return sorted(row.id for row in rows) == list(range(_ROWS))


def _echo(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
