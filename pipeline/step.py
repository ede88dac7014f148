"""The stateful step of the Spark job, which maps entries of shards to rows. States are stored outside Spark.

A task reads its shards' entries and matches them in the same stage. There is no shuffle, and Spark's state stores are
not used (ADR 15 gives the reasons and figures). A crash at any point changes nothing, for these reasons:

1.  Spark writes the micro-batch's offsets to the checkpoint before anything else. A micro-batch is thus a fixed range
of each shard's log, and a re-run reads the same entries.
2.  Each range has the position after which it begins, and ``HeldShards`` finds the state at exactly that position:
retained, handed over, or rebuilt from a snapshot and the log. A state that is ahead is not used.
3.  ``ShardState`` is a function of (state, entries): same rows, same ids, same next state.
4.  ``foreachBatch`` passes the rows to the sink on the driver, which stores them by id. After a crash between sink and
    commit, the re-run stores the same rows under the same ids.
5.  Spark marks the micro-batch as committed, and notifies the source only when the next one is planned. The source
trims the log only before snapshots at or before committed offsets.

The sink collects the frame once, because the frame must be computed exactly once per micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import QueryFailed
from pipeline.held_shards import HeldOptions, held_shards
from pipeline.spark.account import summary_of
from pipeline.spark.workers import matcher_workers
from shards import OutputRow, RowBlock, StoredEntry
from streams import column_of, position_order, texts_of

OUTPUT_DDL = (
    "shard INT, position STRING, kind STRING, stream STRING, subject STRING, counter STRING, id STRING, body BINARY"
)
_TEXTS = ("position", "kind", "stream", "subject", "counter", "id")
_OUTPUT = pa.schema({"shard": pa.int32(), **dict.fromkeys(_TEXTS, pa.string()), "body": pa.binary()})
_MOST_ROWS, _MOST_BYTES = 10_000, 4_000_000  # in a batch that is passed to Spark


def load_states(session: SparkSession, options: HeldOptions) -> None:
    """Load the state of each shard in the process that will match the shard. Afterwards the service is ready.

    The options are those of the following query. Raise ``QueryFailed`` with the reason if a state cannot be loaded.
    """
    tasks = max(1, min(options.log.tasks, options.log.shards))
    shards = session.range(0, options.log.shards, numPartitions=tasks)
    with matcher_workers(session.sparkContext):
        loaded = shards.mapInArrow(partial(_load, options=options), "id LONG")
    try:
        loaded.collect()
    except PySparkException as error:
        raise QueryFailed(f"the states of the shards cannot be loaded: {summary_of(error)}") from error


def _load(batches: Iterable[pa.RecordBatch], options: HeldOptions) -> Iterator[pa.RecordBatch]:
    held = held_shards(options)
    for batch in batches:
        for shard in batch.column(0).to_pylist():
            held.load(shard)
        yield batch


def match_shards(entries: DataFrame, options: HeldOptions) -> DataFrame:
    """Match entries of the log, a frame with the source's columns. Return a frame of the rows (``OUTPUT_DDL``).

    The rows are in any order.
    """
    with matcher_workers(entries.sparkSession.sparkContext):
        return entries.mapInArrow(partial(advance, options=options), OUTPUT_DDL)


def advance(batches: Iterable[pa.RecordBatch], options: HeldOptions) -> Iterator[pa.RecordBatch]:
    """Match the entries of one partition in a Python worker of Spark, and yield the rows (``OUTPUT_DDL``)."""
    held = held_shards(options)
    for shard, after, entries in ranges(batches):
        yield from portions(to_batch(held.advance(shard, after, entries)))


def ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, str, list[StoredEntry]]]:
    """Yield the number, start position and entries of each shard in a partition.

    Each shard's rows follow one another in the batches.
    """
    current: tuple[int, str] | None = None
    entries: list[StoredEntry] = []
    for batch in batches:
        names = ("shard", "after", "position", "kind", "stream", "route", "body")
        columns = (batch.column(name).to_pylist() for name in names)
        for shard, after, position, kind, stream, route, body in zip(*columns, strict=True):
            if current is not None and current != (shard, after):
                yield *current, entries
                entries = []
            current = shard, after
            entries.append(StoredEntry(position=position, kind=kind, stream=stream, route=route, body=body))
    if current is not None:
        yield *current, entries


def to_batch(blocks: Iterable[RowBlock]) -> pa.RecordBatch:
    """Encode the rows in columns of ``OUTPUT_DDL``."""
    filled = [
        block if block.found.events is None else replace(block, found=block.found.with_bodies())
        for block in blocks
        if len(block)
    ]
    if not filled:
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in _OUTPUT], schema=_OUTPUT)
    places = np.repeat(np.arange(len(filled), dtype=np.int32), [len(block) for block in filled])
    rows = column_of(places)
    texts = ([getattr(block, name) for block in filled] for name in ("position", "kind", "stream"))
    about = [texts_of(values).take(rows) for values in texts]
    shards = np.array([block.shard for block in filled], np.int32)[places]
    row_columns = zip(*map(_columns, filled), strict=True)
    return pa.RecordBatch.from_arrays([column_of(shards), *about, *map(pa.concat_arrays, row_columns)], schema=_OUTPUT)


def portions(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide the rows into batches for Spark, each with limited numbers of rows and bytes."""
    ends = np.cumsum(pc.binary_length(rows.column("body")), dtype=np.int64)
    first = 0
    while first < len(rows):
        fitting = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + _MOST_BYTES, side="right")) - first
        size = max(1, min(fitting, _MOST_ROWS))
        yield rows.slice(first, size)
        first += size


def _columns(block: RowBlock) -> list[pa.Array]:
    rows = block.found
    return [rows.subjects.cast(pa.string()), rows.counters.cast(pa.string()), rows.ids, rows.bodies]


def from_table(table: pa.Table) -> list[OutputRow]:
    """Return a collected micro-batch's rows, sorted by shard and position. Rows at one position keep their order."""
    columns = (table.column(name).to_pylist() for name in OutputRow._fields)
    rows = list(map(OutputRow._make, zip(*columns, strict=True)))
    places = {position: position_order(position) for position in {row.position for row in rows}}
    rows.sort(key=lambda row: (row.shard, places[row.position]))
    return rows
