"""History for a backtest: event files as a Spark frame, by shard and in order.

Files are read by the readers that everything else uses, each by one task, which holds some events of it at a time (CSV
and XES: all). What cannot be read does not fail its task but becomes a row that says why, so that a person gets to see
the reader's own words.

A row of the frame is a portion of many events as one batch: Spark moves and orders portions, which costs it next to
nothing, and a shard's task puts their events in order (``merging``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.merging import Portion
from streams import EventBatch, EventFileError, StreamDeclaration
from streams.readers import ReaderOptions, iterate_batches

_PORTION_ROWS = 65_536  # of all shards
_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("file", pa.int32()),
        pa.field("row", pa.int64()),
        pa.field("events", pa.int64()),
        pa.field("body", pa.binary()),
        pa.field("error", pa.string()),
    ]
)
_DDL = "shard INT, first LONG, last LONG, file INT, row LONG, events LONG, body BINARY, error STRING"
_PORTIONS_AT_ONCE = 4  # that a task gets from Spark; they are large
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
    """Portions of events by shard, one partition each, in the order in which ``in_order`` takes them.

    Sets in the session how many of them a task gets at once.

    Args:
        session: From ``build_session``.
        history: What is read.
        shards: How many partitions.
    """
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_PORTIONS_AT_ONCE))
    # Times that count the events of all files can only be told by who reads them all.
    tasks = 1 if history.options.times == "file" else len(history.files)
    numbers = session.range(0, tasks, numPartitions=tasks)
    rows = numbers.mapInArrow(_reading(history, shards, tasks), _DDL)
    order = ("file", "row") if history.is_ordered else ("first", "file", "row")
    return rows.repartitionById(shards, "shard").sortWithinPartitions(*order)


def portions_of(rows: Iterable[pa.RecordBatch]) -> Iterator[Portion]:
    """The portions of one shard."""
    for part in rows:
        columns = [part.column(name).to_pylist() for name in ("first", "file", "row", "body")]
        for first_us, file, row, body in zip(*columns, strict=True):
            yield Portion(first_us=first_us, place=(file, row), events=EventBatch.from_bytes(body))


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
            for part in iterate_batches(path, history.options, history.declaration, rows=_PORTION_ROWS):
                yield _rows_of(part, later_us, number, count, shards)
                count += len(part)
        except EventFileError as error:
            yield _refusal(error)
            return
        done += count


def _rows_of(batch: EventBatch, later_us: int, file: int, first_row: int, shards: int) -> pa.RecordBatch:
    """A portion for each shard that has some of the events."""
    rows = []
    for shard, part in batch.with_times(batch.time_us + later_us).split_by_shard(shards).items():
        times_us, body = part.time_us, part.to_bytes()
        times = {"first": int(times_us.min()), "last": int(times_us.max())}
        rows.append({"shard": shard, **times, "file": file, "row": first_row, "events": len(part), "body": body})
    return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def _refusal(error: EventFileError) -> pa.RecordBatch:
    row = dict.fromkeys(_SCHEMA.names)
    return pa.RecordBatch.from_pylist([{**row, "shard": 0, "error": error.message}], schema=_SCHEMA)
