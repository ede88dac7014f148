"""Reads rows of files through a mapping of columns. Each row becomes a CloudEvent, which every stream can read.

An event without an id gets the id ``<file>:<line>`` or ``<file>:<row>``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import orjson

from streams.errors import EventRejected
from streams.forms.cloudevents import keyed_cloudevent
from streams.forms.extent import decode_json
from streams.forms.parsing import require_object
from streams.keys import KeyForm
from streams.readers.assembling import Assembly
from streams.readers.comma_separated import CellPlaces, form_of, read_header, read_row
from streams.readers.jsonl import BYTE_ORDER_MARK, declaration_of, read_object
from streams.readers.options import ReaderOptions

SOURCE = "forestall/feed"

_SHOWN_BYTES = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """A row of a file, before it is read as an event.

    Attributes:
        place: Number of the line (JSON lines, CSV) or row (Parquet), from 1. For XES it is a description in words.
        body: A JSON object as written, not checked. If the row is faulty, these are its first bytes.
        fault: Why the row cannot be read. None if it is not known to be faulty.
    """

    place: int | str
    body: bytes
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """How the columns of a row are arranged in a JSON object.

    Attributes:
        top: Columns that are members of the object itself. All other columns are members of its ``data``. If it is
            None, every column is a member of the object itself, and dots in its name make nested objects.
        texts: Columns of CSV that are texts even if all cells look like numbers. It includes ``top`` except the time.
        id: Column of the event's id, which is generated if missing, or several columns that the stream joins to one id.
        time: Column of the event's time. Whole microseconds remain numbers.
        max_row_bytes: The largest size of a row. Larger rows are faulty.
        data: Path of the attributes in the JSON object, if ``top`` is not None.
        mapping: For files in foreign forms, options by which every row becomes a CloudEvent. If it is None, columns
            have their usual names.
        written: Options that describe the form of the file, if ``mapping`` is None.
        key: Path of the correlation key in the CloudEvent, possibly by event type. It is used if there is a mapping.
    """

    top: frozenset[str] | None = frozenset({"id", "type", "time", "key", "subject"})
    texts: frozenset[str] = frozenset({"id", "type", "key", "subject"})
    id: str | tuple[str, ...] = "id"
    time: str = "time"
    max_row_bytes: int = 10 * 1024 * 1024
    data: str = "data"
    mapping: ReaderOptions | None = None
    written: ReaderOptions = field(default_factory=ReaderOptions)
    key: KeyForm = "subject"


RowReader: TypeAlias = Callable[[io.BufferedReader, Path, RowLayout, ReaderOptions], Iterator[RawRow]]
"""A function that reads the rows of a file."""


def mapped_row(row: RawRow, path: Path, key: KeyForm, options: ReaderOptions) -> RawRow:
    """Convert a row in the form that the options describe to a CloudEvent with its key at the path ``key``.

    ``path`` is the file. A row that is rejected is returned with its fault.
    """
    if row.fault is not None:
        return row
    declaration = declaration_of(options)
    try:
        value = require_object(decode_json(row.body))
        assembly = Assembly(path, options)
        event = read_object(value, declaration, assembly)
        if assembly.has_numbered:
            event = replace(event, id=f"{path.name}:{row.place}")
    except (EventRejected, orjson.JSONDecodeError) as error:
        return RawRow(place=row.place, body=row.body[:_SHOWN_BYTES], fault=str(error))
    return RawRow(place=row.place, body=orjson.dumps(keyed_cloudevent(event, SOURCE, key)))


def raw_lines(stream: io.BufferedReader, max_row_bytes: int) -> Iterator[RawRow]:
    """Yield the non-empty lines of a file with their numbers. Longer lines are cut to about ``max_row_bytes``."""
    number = 0
    while line := stream.readline(max_row_bytes + 2):
        number += 1
        is_whole = line.endswith(b"\n") or len(line) < max_row_bytes + 2
        while not is_whole:
            rest = stream.readline(max_row_bytes)
            is_whole = rest.endswith(b"\n") or not rest
        text = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).strip()
        if text:
            yield RawRow(place=number, body=text)


def _lines(stream: io.BufferedReader, path: Path, layout: RowLayout, options: ReaderOptions) -> Iterator[RawRow]:
    for row in raw_lines(stream, layout.max_row_bytes):
        yield row if len(row.body) > layout.max_row_bytes else mapped_row(row, path, layout.key, options)


def _comma_separated(
    stream: io.BufferedReader, path: Path, layout: RowLayout, options: ReaderOptions
) -> Iterator[RawRow]:
    form = form_of(path, options)
    assembly, columns = Assembly(path, form.options), None
    for line, row in form.rows(stream, path):
        if columns is None:
            columns = read_header(row, path, options, form)
        else:
            yield _cells_row(row, line, columns, assembly, (path, layout))


def _cells_row(
    row: list[str], line: int, columns: CellPlaces, assembly: Assembly, source: tuple[Path, RowLayout]
) -> RawRow:
    path, layout = source
    try:
        event = read_row(row, columns, assembly)
    except EventRejected as error:
        return RawRow(place=line, body=",".join(row).encode()[:_SHOWN_BYTES], fault=error.message)
    identified = event if columns.ids else replace(event, id=f"{path.name}:{line}")
    return RawRow(place=line, body=orjson.dumps(keyed_cloudevent(identified, SOURCE, layout.key)))


MAPPED_ROWS: Mapping[str, RowReader] = {"jsonl": _lines, "csv": _comma_separated}
