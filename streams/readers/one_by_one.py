"""Iterates over the events of a file that should not be kept in memory.

JSON lines and Parquet are read row by row, in the order of the file. CSV and XES are read as a whole, as by
``read_events``. But ids may repeat here, which ``read_events`` does not allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import orjson

from streams.batch import EventBatch
from streams.declaration import StreamDeclaration
from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.forms.cloudevents import parse_cloudevent
from streams.forms.extent import check_extent, decode_json
from streams.forms.parsing import MISSING, read_path, require_object
from streams.keys import members_of
from streams.readers.assembling import Assembly
from streams.readers.files import read_events
from streams.readers.jsonl import IN_MICROSECONDS, identified
from streams.readers.line_columns import chunks_by_columns
from streams.readers.mapped_rows import RawRow, RowLayout
from streams.readers.opening import open_events
from streams.readers.options import Columns, ReaderOptions
from streams.readers.raw_rows import FILE_KINDS, kind_of, raw_rows

_STREAMED = ("jsonl", "parquet")
_CHUNK_BYTES = 8 * 1024**2
_CLOUD_EVENT = b'"specversion"'


def iterate_events(
    path: Path, options: ReaderOptions | None = None, declaration: StreamDeclaration | None = None
) -> Iterator[Event]:
    """Yield the events of a file. Events of equal time are in the order of the file.

    ``declaration`` is the stream of the events in JSON lines and Parquet. The rows are then CloudEvents, or plain
    objects with the stream's mapping. If it is None, the rows are plain objects as in ``read_events``, with the key
    that the options name.

    Raises:
        EventFileError: The file cannot be read or has invalid events. Earlier events may have been yielded.
    """
    settings = options if options is not None else ReaderOptions()
    kind = kind_of(path)
    if kind is None:
        raise EventFileError(
            f"{path}: unknown kind of event file; the name of an event file must end in one of {', '.join(FILE_KINDS)}",
            file=str(path),
        )
    if kind not in _STREAMED:
        yield from read_events(path, settings)
        return
    row_declaration = declaration or StreamDeclaration(name="file", key=settings.key or "key")
    mapping = replace(row_declaration.mapping, clock=IN_MICROSECONDS)
    row_declaration = replace(row_declaration, event_types=(), end_events=(), mapping=mapping)
    assembly, layout = Assembly(path, settings), _layout(row_declaration)
    if declaration is None and settings.columns != Columns():
        row_declaration, layout = StreamDeclaration(name="file", key="subject"), RowLayout(mapping=settings)
    for row in raw_rows(path, kind, layout, settings):
        try:
            yield _event_of(row, row_declaration, assembly)
        except EventRejected as error:
            assembly.refuse(row.place, error)
    assembly.finish()


def iterate_batches(
    path: Path, options: ReaderOptions | None = None, declaration: StreamDeclaration | None = None, *, rows: int
) -> Iterator[EventBatch]:
    """Yield the events of ``iterate_events`` in batches of at most ``rows``. JSON lines are read by columns."""
    settings, done = options or ReaderOptions(), 0
    if declaration is None and kind_of(path) == "jsonl":
        with open_events(path, settings) as stream:
            for batch in chunks_by_columns(stream, path, settings, _CHUNK_BYTES, without=_CLOUD_EVENT):
                if batch is None:
                    break
                yield from batch.slices(rows)
                done += len(batch)
            else:
                return
    events = islice(iterate_events(path, settings, declaration), done, None)
    while part := list(islice(events, rows)):
        yield EventBatch.from_events(part)


def _layout(declaration: StreamDeclaration) -> RowLayout:
    usual = RowLayout()
    mapping = declaration.mapping
    if mapping.data != "data":
        return RowLayout(top=None, id=mapping.id, time=mapping.time)
    mapped = {*mapping.paths["id"], mapping.type, mapping.time}
    return RowLayout(
        top=(usual.top or frozenset()) | mapped | members_of(declaration.key), id=mapping.id, time=mapping.time
    )


def _event_of(row: RawRow, declaration: StreamDeclaration, assembly: Assembly) -> Event:
    if row.fault is not None:
        raise EventRejected(row.fault)
    try:
        value = require_object(decode_json(row.body))
    except orjson.JSONDecodeError as error:
        raise EventRejected(f"not JSON: {error.msg} at column {error.colno}; a line is a JSON object") from error
    check_extent(value)
    if "specversion" in value:
        time_us = assembly.next_time_us(value.get("time"), 'give the event a "time"')
        return replace(parse_cloudevent(value, declaration), time_us=time_us)
    path = declaration.mapping.time
    time_value = read_path(value, path)
    time_us = assembly.next_time_us(None if time_value is MISSING else time_value, f'give the row a "{path}"')
    return identified(value, time_us, declaration, assembly)
