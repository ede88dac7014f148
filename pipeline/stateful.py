"""The stateful step of the Spark job: the one module that knows which of Spark's operators holds the state.

Chosen: ``applyInPandasWithState``, grouped by shard, the state of a shard being one row with one binary column. It
moved about twice as many rows per second as ``transformWithStateInPandas``.

What a micro-batch does, and why a crash at any point changes nothing:

1.  Spark writes the batch's offsets to the checkpoint before anything else. A batch is thus a fixed range of each
    shard's log, and a re-run reads the same entries.
2.  Each state partition opens the state store at the version that the previous batch committed. A re-run opens that
    same version, even if the crashed run had already committed the next; RocksDB then writes that next version anew.
3.  ``ShardState`` is a function of (state, entries): same rows, same ids, same next state. Entries at or before the
    state's own position are skipped, so state and offsets could even disagree without an entry counting twice.
4.  ``foreachBatch`` hands the rows to the sink on the driver, which stores them by id. If the crash came between sink
    and commit, the re-run stores the same rows under the same ids.
5.  Spark marks the batch as committed, and only when the next batch is planned is the source told to trim behind it.

The frame must be computed exactly once per batch: the sink collects it once and never asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.functions import array, col, element_at, lit
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from pipeline.entries import StoredEntry
from pipeline.routing import routes
from pipeline.rows import OutputRow, RowKind
from pipeline.shard import ShardState
from streams import position_order

if TYPE_CHECKING:
    import pandas as pd

OUTPUT_DDL = "shard INT, position STRING, kind STRING, stream STRING, id STRING, body BINARY"
_STATE_DDL = "blob BINARY"


def match_shards(entries: DataFrame, shards: int) -> DataFrame:
    """Rows of ``OUTPUT_DDL`` that the entries of the log cause, in no order.

    Args:
        entries: Streaming frame in the columns of the event-log source.
        shards: Number of shards of the log.
    """
    return _grouped(entries, shards).applyInPandasWithState(
        advance_shard, OUTPUT_DDL, _STATE_DDL, "append", GroupStateTimeout.NoTimeout
    )


def ignore_shards(entries: DataFrame, shards: int) -> DataFrame:
    """The same plan with an operator that looks at nothing and says nothing: the ceiling for ``match_shards``."""
    return _grouped(entries, shards).applyInPandasWithState(
        skip_shard, OUTPUT_DDL, _STATE_DDL, "append", GroupStateTimeout.NoTimeout
    )


def advance_shard(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Apply one shard's entries of one micro-batch; runs in Spark's Python worker."""
    shard, entries = collect_entries(frames)
    current = ShardState.load(bytes(state.get[0])) if state.exists else ShardState(shard)
    rows = current.apply(entries)
    state.update((current.dump(),))
    if rows:
        yield to_frame(rows)


def skip_shard(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Count one shard's entries of one micro-batch, with the same movement of data and state as ``advance_shard``."""
    count = int.from_bytes(state.get[0]) if state.exists else 0
    for frame in frames:
        count += len(frame)
    state.update((count.to_bytes(8),))
    yield from ()


def collect_entries(frames: Iterable[pd.DataFrame]) -> tuple[int, list[StoredEntry]]:
    """The shard, and its entries in the order of its log: a shuffle keeps no order."""
    shard = -1
    entries: list[StoredEntry] = []
    for frame in frames:
        if len(frame):
            shard = int(frame["shard"].iloc[0])
        columns = (frame[name].tolist() for name in ("position", "kind", "stream", "body"))
        entries.extend(
            StoredEntry(position=position, kind=kind, stream=stream, body=bytes(body))
            for position, kind, stream, body in zip(*columns, strict=True)
        )
    entries.sort(key=lambda entry: position_order(entry.position))
    return shard, entries


def to_frame(rows: list[OutputRow]) -> pd.DataFrame:
    """Rows in columns of ``OUTPUT_DDL``."""
    table = pa.table(
        {
            "shard": pa.array([row.shard for row in rows], pa.int32()),
            "position": [row.position for row in rows],
            "kind": [row.kind.value for row in rows],
            "stream": [row.stream for row in rows],
            "id": [row.id for row in rows],
            "body": [row.body for row in rows],
        }
    )
    return cast("pd.DataFrame", table.to_pandas())


def from_table(table: pa.Table) -> list[OutputRow]:
    """Rows of a collected batch, by shard and position; rows of one entry keep the order in which they were made."""
    columns = (table.column(name).to_pylist() for name in ("shard", "position", "kind", "stream", "id", "body"))
    rows = [
        OutputRow(kind=RowKind(kind), stream=stream, id=row_id, body=body, position=position, shard=shard)
        for shard, position, kind, stream, row_id, body in zip(*columns, strict=True)
    ]
    rows.sort(key=lambda row: (row.shard, position_order(row.position)))
    return rows


def _grouped(entries: DataFrame, shards: int) -> GroupedData:
    route_of_shard = array(*(lit(route) for route in routes(shards)))
    return entries.withColumn("route", element_at(route_of_shard, col("shard") + 1)).groupBy("route")
