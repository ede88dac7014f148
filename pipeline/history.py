"""History for a backtest: event files as rows of a Spark frame, by shard and in order.

Files are read by the readers that everything else uses, each by one task, which holds some rows of it at a time (CSV
and XES: all). What cannot be read does not fail its task but becomes a row that says why, so that a person gets to see
the reader's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streams import EventBatch, EventFileError, StreamDeclaration, shard_of
from streams.readers import ReaderOptions, iterate_batches

BATCH_ROWS = 4_096

_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("time", pa.int64()),
        pa.field("file", pa.int32()),
        pa.field("row", pa.int64()),
        pa.field("key_hash", pa.int64()),
        pa.field("id", pa.string()),
        pa.field("type", pa.string()),
        pa.field("key", pa.string()),
        pa.field("data", pa.binary()),
        pa.field("error", pa.string()),
    ]
)
_DDL = (
    "shard INT, time LONG, file INT, row LONG, key_hash LONG, id STRING, type STRING, key STRING, data BINARY, "
    "error STRING"
)
_IGNORED = (".", "_")

Step = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Events of the past.

    Attributes:
        files: In their order, absolute.
        options: How they are read.
        declaration: The stream that they are of; None: they are as ``forestall match`` takes them.
        is_ordered: Whether events are seen in the order of the files, whatever their times, as they would be in a log;
            else in the order of their times, those of one time in the order of the files.
    """

    files: tuple[Path, ...]
    options: ReaderOptions = field(default_factory=ReaderOptions)
    declaration: StreamDeclaration | None = None
    is_ordered: bool = False


def history_files(path: Path) -> tuple[Path, ...]:
    """A file, or all files below a folder by their paths, without those whose name or folder begins with . or _.

    Raises:
        EventFileError: There is nothing.
    """
    if path.is_file():
        return (path.resolve(),)
    if not path.is_dir():
        raise EventFileError(f"{path}: there is no such file or folder of events", file=str(path))
    found = sorted(
        file.resolve()
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(_IGNORED) for part in file.relative_to(path).parts)
    )
    if not found:
        raise EventFileError(f"{path}: the folder holds no event files", file=str(path))
    return tuple(found)


def history_frame(session: SparkSession, history: History, shards: int) -> DataFrame:
    """Events by shard, one partition each, in the order in which a shard is to see them.

    Args:
        session: From ``build_session``.
        history: What is read.
        shards: How many partitions.
    """
    # Times that count the events of all files can only be told by who reads them all.
    tasks = 1 if history.options.times == "file" else len(history.files)
    numbers = session.range(0, tasks, numPartitions=tasks)
    rows = numbers.mapInArrow(_reading(history, shards, tasks), _DDL)
    order = ("file", "row") if history.is_ordered else ("time", "file", "row")
    return rows.repartitionById(shards, "shard").sortWithinPartitions(*order)


def batches_of(rows: Iterable[pa.RecordBatch]) -> Iterator[EventBatch]:
    """Rows of one shard as the matcher takes them, some ``BATCH_ROWS`` at a time."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for part in rows:
        waiting.append(part)
        held += part.num_rows
        if held >= BATCH_ROWS:
            yield _events_of(waiting)
            waiting, held = [], 0
    if held:
        yield _events_of(waiting)


def _reading(history: History, shards: int, tasks: int) -> Step:
    """What a task does: the files whose numbers it gets, or all of them where there is one task."""

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                yield from _read_files(history, range(task, len(history.files), tasks), shards)

    return read


def _read_files(history: History, numbers: Sequence[int], shards: int) -> Iterator[pa.RecordBatch]:
    done = 0
    for number in numbers:
        count = 0
        try:
            path, later_us = history.files[number], done if history.options.times == "file" else 0
            for part in iterate_batches(path, history.options, history.declaration, rows=BATCH_ROWS):
                yield _rows_of(part, later_us, number, count, shards)
                count += len(part)
        except EventFileError as error:
            yield _refusal(error)
            return
        done += count


def _rows_of(batch: EventBatch, later_us: int, file: int, first_row: int, shards: int) -> pa.RecordBatch:
    columns, hashes, size = batch.columns, batch.key_hashes, len(batch)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(shard_of(hashes, shards).astype(np.int32)),
            pa.array(batch.time_us + later_us),
            pa.array(np.full(size, file, np.int32)),
            pa.array(np.arange(first_row, first_row + size, dtype=np.int64)),
            pa.array(hashes.view(np.int64)),
            columns.column("id"),
            columns.column("type").cast(pa.string()),
            columns.column("key"),
            columns.column("data"),
            pa.nulls(size, pa.string()),
        ],
        schema=_SCHEMA,
    )


def _refusal(error: EventFileError) -> pa.RecordBatch:
    row = dict.fromkeys(_SCHEMA.names)
    return pa.RecordBatch.from_pylist([{**row, "shard": 0, "error": error.message}], schema=_SCHEMA)


def _events_of(parts: Sequence[pa.RecordBatch]) -> EventBatch:
    table = pa.Table.from_batches(parts).combine_chunks()
    rows = table.to_batches()[0]
    arrays = [
        rows.column("id"),
        rows.column("type").dictionary_encode(),
        rows.column("time").cast(pa.timestamp("us", tz="UTC")),
        rows.column("key"),
        pa.array(rows.column("key_hash").to_numpy(zero_copy_only=False).view(np.uint64)),
        rows.column("data"),
    ]
    return EventBatch(pa.RecordBatch.from_arrays(arrays, schema=EventBatch.from_events([]).columns.schema))
