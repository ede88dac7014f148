"""Reads event files. The file name decides the reader."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

import orjson
import pyarrow as pa

from streams.batch import EventBatch
from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.keys import places_of
from streams.readers.comma_separated import read_comma_separated
from streams.readers.jsonl import declaration_of, read_jsonl
from streams.readers.line_columns import read_line_columns
from streams.readers.opening import open_events
from streams.readers.options import Progress, ReaderOptions
from streams.readers.table_columns import batch_of_table, columns_read


def _read_xes(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """Read the events of an XES file. The reader is imported on demand, because few files are XML."""
    from streams.readers.xes import read_xes  # noqa: PLC0415

    return read_xes(stream, path, options)


_READERS: Mapping[str, Callable[[io.BufferedReader, Path, ReaderOptions], list[Event]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".csv": read_comma_separated,
    ".xes": _read_xes,
}
_LEAST_BYTES = 512 * 1024  # a few thousand lines
_FIRST_LINES = 100
_LEAST_COMPRESSED = _LEAST_BYTES // 8


def _parquet(path: Path, options: ReaderOptions, read: Collection[str] | None) -> pa.Table:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet files wait for the import

    with pq.ParquetFile(path) as file:
        size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
        if size > options.max_bytes:
            raise EventFileError(f"{path}: has more than {options.max_bytes:,} bytes", file=str(path))
        return file.read(columns_read(file.schema_arrow.names, options, read))


def _arrow(path: Path, options: ReaderOptions, read: Collection[str] | None) -> pa.Table:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        table = file.read_all()
    return table.select(columns_read(table.schema.names, options, read))


_TABLES: Mapping[str, Callable[[Path, ReaderOptions, Collection[str] | None], pa.Table]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
}


def read_events(
    path: str | Path, options: ReaderOptions | None = None, progress: Progress | None = None
) -> list[Event]:
    """Read the events of a file by time. Events of equal time keep the order of the file.

    The name ends in ``.jsonl``, ``.ndjson``, ``.csv`` or ``.xes``, each possibly followed by ``.gz``, or in
    ``.parquet`` or ``.arrow`` (Arrow's file format). ``progress`` is called with the share of the file that has been
    read.
    """
    path, settings = Path(path), options or ReaderOptions()
    if (kind := _kind(path)) in _TABLES:
        return read_batch(path, settings, progress).to_events()
    reader = _READERS[kind]
    with open_events(path, settings, progress) as stream:
        return reader(stream, path, settings)


def read_batch(
    path: str | Path,
    options: ReaderOptions | None = None,
    progress: Progress | None = None,
    read: Collection[str] | None = None,
) -> EventBatch:
    """Read the events of a file as ``read_events`` does, but as one batch.

    Many JSON lines are read by columns, which is much faster. ``read`` names the needed attributes, and applies to
    files that have columns. None means all attributes.
    """
    path, settings = Path(path), options or ReaderOptions()
    if (kind := _kind(path)) in _TABLES:
        return _of_table(path, _TABLES[kind], settings, read)
    if reads_by_columns(path):
        with open_events(path, settings, progress) as stream:
            batch = read_line_columns(stream, path, settings)
        if batch is not None:
            return batch
    return EventBatch.from_events(read_events(path, settings, progress))


def reads_by_columns(path: str | Path) -> bool:
    """Return whether ``read_batch`` reads a file by columns. It does so for JSON lines, unless the file is small."""
    path = Path(path)
    if _READERS.get(_kind(path)) is not read_jsonl:
        return False
    try:
        return path.stat().st_size >= (_LEAST_COMPRESSED if path.suffix.lower() == ".gz" else _LEAST_BYTES)
    except OSError:
        return False  # opening the file reports the error


def unread_members(path: Path, options: ReaderOptions) -> frozenset[str]:
    """Return the names of members that the first JSON lines of a file have beside ``data``, and that are not read.

    Other kinds of files have none.
    """
    declaration = declaration_of(options)
    mapping = declaration.mapping
    if _READERS.get(_kind(path)) is not read_jsonl or mapping.data is None:
        return frozenset()
    paths = {*mapping.paths["id"], mapping.type, mapping.time, mapping.data, *places_of(declaration.key)}
    names: set[str] = set()
    with open_events(path, options) as stream, suppress(orjson.JSONDecodeError):
        for line in islice(stream, _FIRST_LINES):
            value = orjson.loads(line.strip() or b"{}")
            names |= value.keys() if isinstance(value, dict) else set()
    return frozenset(names - {place.partition(".")[0] for place in paths})


def _of_table(
    path: Path,
    reader: Callable[[Path, ReaderOptions, Collection[str] | None], pa.Table],
    options: ReaderOptions,
    read: Collection[str] | None,
) -> EventBatch:
    try:
        with path.open("rb"):  # Arrow's own message would describe its call
            return batch_of_table(reader(path, options, read), options, read)
    except OSError as error:
        why = f"cannot be opened: {error.strerror or error}"
    except pa.ArrowException as error:
        why = f"not readable: {error}"
    except EventRejected as error:
        why = error.message
    raise EventFileError(f"{path}: {why}", file=str(path))


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in _TABLES:
        return suffix
    suffix = Path(path.stem if suffix == ".gz" else path.name).suffix.lower()
    if suffix not in _READERS:
        raise EventFileError(
            f"{path}: unknown kind of event file; its name must end in {', '.join(_READERS)}, or one of these and .gz, "
            f"or in {' or '.join(_TABLES)}",
            file=str(path),
        )
    return suffix
