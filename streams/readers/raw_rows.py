"""Reads the rows of an event file as JSON objects, without checking their content.

``read_events`` rejects a file for one bad event. This module yields every row on its own, with its place in the file: a
JSON object, or the reason why the row has none. Each kind of file is converted as follows:

- JSON lines: the line as written; empty lines are skipped.
- CSV and Parquet: an object of the row's columns, see ``RowLayout``. Cells of CSV are read as by ``read_events``. Times
  of Parquet are RFC 3339 in UTC; a time without a zone is UTC, or in the zone of ``ReaderOptions.clock``. Without an id
  column, the id is ``<file>:<row>``.
- XES: a CloudEvent per event, in the order of time, with ids ``<file>:<case>:<n>``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from streams.columns.json_columns import json_value
from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.forms.cloudevents import render_cloudevent
from streams.forms.parsing import with_value
from streams.keys import place_for
from streams.readers.assembling import Assembly
from streams.readers.comma_separated import refuse_repeated, width_fault
from streams.readers.csv_form import CsvForm, examine
from streams.readers.mapped_rows import MAPPED_ROWS, RawRow, RowLayout, RowReader, mapped_row, raw_lines
from streams.readers.opening import open_events
from streams.readers.options import ReaderOptions
from streams.readers.xes import CASE_NAME, Trace, iterate_traces, read_event, refuse_columns, type_keys

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_PARQUET_ROWS = 1_024
_SHOWN_BYTES = 4_000


def kind_of(path: Path) -> str | None:
    """Return the kind of a file by its name, such as ``csv`` for ``orders.csv.gz``. Return None for unknown names."""
    name = Path(path.stem) if path.suffix.lower() == ".gz" else path
    return _KIND_BY_SUFFIX.get(name.suffix.lower())


def raw_rows(path: Path, kind: str, layout: RowLayout, options: ReaderOptions | None = None) -> Iterator[RawRow]:
    """Yield the rows of a file in their order. If the name ends in ``.gz``, the file is decompressed.

    ``layout`` arranges the rows of CSV and Parquet. ``options`` limit the file's size and describe its form. By
    default, they follow from the layout. If the file cannot be read further, ``EventFileError`` is raised after the
    earlier rows.
    """
    settings = options or layout.mapping or layout.written
    if kind == "parquet":
        yield from _bounded(_parquet_rows(path, layout, settings.clock.zone), layout)
        return
    with open_events(path, settings) as stream:
        if layout.mapping is not None and kind in MAPPED_ROWS:
            yield from _bounded(MAPPED_ROWS[kind](stream, path, layout, layout.mapping), layout)
            return
        yield from _bounded(_ROWS_BY_KIND[kind](stream, path, layout, settings), layout)


def _bounded(rows: Iterator[RawRow], layout: RowLayout) -> Iterator[RawRow]:
    for row in rows:
        if len(row.body) > layout.max_row_bytes:
            fault = f"the row has more than {layout.max_row_bytes} bytes; send smaller events"
            yield RawRow(place=row.place, body=row.body[:_SHOWN_BYTES], fault=fault)
        else:
            yield row


def _json_lines(stream: io.BufferedReader, _path: Path, layout: RowLayout, _options: ReaderOptions) -> Iterator[RawRow]:
    return raw_lines(stream, layout.max_row_bytes)


def _comma_separated(
    stream: io.BufferedReader, path: Path, layout: RowLayout, options: ReaderOptions
) -> Iterator[RawRow]:
    header: list[str] | None = None
    form = examine(path, options, layout.texts | {layout.time}, layout.time)
    for line, row in form.rows(stream, path):
        if header is None:
            refuse_repeated(row, path)
            header = row
        else:
            yield _cells_row(header, row, line, (path, layout, form))


def _cells_row(header: list[str], row: list[str], line: int, source: tuple[Path, RowLayout, CsvForm]) -> RawRow:
    path, layout, form = source
    if fault := width_fault(row, len(header)):
        return RawRow(place=line, body=",".join(row).encode()[:_SHOWN_BYTES], fault=fault)
    try:
        cells = {name: _cell(name, text, layout, form) for name, text in zip(header, row, strict=True)}
    except EventRejected as error:
        return RawRow(place=line, body=",".join(row).encode()[:_SHOWN_BYTES], fault=error.message)
    return RawRow(place=line, body=orjson.dumps(_arranged(cells, f"{path.name}:{line}", layout)))


def _cell(name: str, text: str, layout: RowLayout, form: CsvForm) -> str | int | float | bool | None:
    if name == layout.time:
        return int(text) if _INTEGER.fullmatch(text) else text or None
    return (text or None) if name in layout.texts else form.value(name, text)


def _arranged(cells: Mapping[str, Any], made_up_id: str, layout: RowLayout) -> dict[str, Any]:
    if isinstance(layout.id, str) and layout.id not in cells:
        cells = {layout.id: made_up_id, **cells}
    if layout.top is None:
        return _nested(cells)
    event = _nested({name: value for name, value in cells.items() if name in layout.top})
    attributes = {name: value for name, value in cells.items() if name not in layout.top}
    data = attributes.pop(layout.data, {})
    inner = _nested({name.removeprefix(layout.data + "."): value for name, value in attributes.items()})
    return with_value(event, layout.data, {**data, **inner} if isinstance(data, Mapping) else data)


def _nested(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Make nested objects from cells whose names have dots, such as ``order.id``.

    A name is not split if a part of it already has a plain value.
    """
    whole: dict[str, Any] = {}
    for name, value in cells.items():
        *parents, last = name.split(".")
        place: Any = whole
        for parent in parents:
            place = place.setdefault(parent, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
        else:
            whole[name] = value
    return whole


def _parquet_rows(path: Path, layout: RowLayout, zone: str | None) -> Iterator[RawRow]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet files wait for the import

    number, clock = 0, layout.time
    if layout.mapping is not None:
        zone, clock = layout.mapping.clock.zone, layout.mapping.columns.time or layout.time
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    if zone is not None:
                        _local_time_as_text(row, clock)
                    raw_row = _columns_row(row, number, (path, layout))
                    yield raw_row if layout.mapping is None else mapped_row(raw_row, path, layout.key, layout.mapping)
    except (OSError, pa.ArrowException) as error:
        raise EventFileError(f"{path}: after row {number}: not readable as Parquet: {error}", file=str(path)) from error


def _local_time_as_text(row: dict[str, Any], column: str) -> None:
    """Replace a time without a zone in a column by its text, so that it is not read as UTC but in the stream's zone."""
    value = row.get(column)
    if isinstance(value, datetime) and value.tzinfo is None:
        row[column] = value.isoformat()


def _columns_row(row: Mapping[str, Any], number: int, source: tuple[Path, RowLayout]) -> RawRow:
    path, layout = source
    try:
        event = _arranged(row, f"{path.name}:{number}", layout) if layout.mapping is None else row
        return RawRow(place=number, body=json_value(event))
    except TypeError as error:
        return RawRow(place=number, body=repr(row).encode()[:_SHOWN_BYTES], fault=f"no JSON can say this row: {error}")


def _xes_rows(stream: io.BufferedReader, path: Path, layout: RowLayout, _options: ReaderOptions) -> Iterator[RawRow]:
    """Yield all events of an XES log as rows, sorted by time. Faulty rows come first, even of a damaged log."""
    refuse_columns(path, layout.mapping or ReaderOptions())
    assembly = Assembly(path, layout.mapping or ReaderOptions())
    events: list[tuple[str, Event]] = []
    damage: EventFileError | None = None
    try:
        yield from _xes_faults(iterate_traces(stream, path), assembly, events)
    except EventFileError as error:
        damage = error
    events.sort(key=lambda placed_event: placed_event[1].time_us)
    for place, event in events:
        identified = Event(
            id=f"{path.name}:{event.id}", type=event.type, time_us=event.time_us, key=event.key, data=event.data
        )
        rendered = render_cloudevent(identified, path.name)
        if layout.mapping is not None:
            rendered = with_value(rendered, place_for(layout.key, identified.type) or "subject", identified.key)
        yield RawRow(place=place, body=orjson.dumps(rendered))
    if damage is not None:
        raise damage


def _xes_faults(traces: Iterator[Trace], assembly: Assembly, events: list[tuple[str, Event]]) -> Iterator[RawRow]:
    for trace in traces:
        case = trace.attributes.get(CASE_NAME, ("", ""))[1]
        if not case:
            fault = f"no {CASE_NAME}; a trace needs one, as the name of its case"
            yield RawRow(place=f"trace {trace.number}", body=b"", fault=fault)
            continue
        yield from _trace_rows(case, trace, assembly, events)


def _trace_rows(case: str, trace: Trace, assembly: Assembly, events: list[tuple[str, Event]]) -> Iterator[RawRow]:
    keys = type_keys(trace, assembly.options)
    for number, attributes in enumerate(trace.events, start=1):
        place = f"trace {trace.number}, event {number}"
        try:
            events.append((place, read_event(case, attributes, assembly, assembly.options, keys)))
        except EventRejected as error:
            yield RawRow(place=place, body=orjson.dumps(dict(attributes))[:_SHOWN_BYTES], fault=error.message)


_ROWS_BY_KIND: Mapping[str, RowReader] = {"jsonl": _json_lines, "csv": _comma_separated, "xes": _xes_rows}
FILE_KINDS: Sequence[str] = (*_ROWS_BY_KIND, "parquet")
_KIND_BY_SUFFIX: Mapping[str, str] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".xes": "xes",
    ".parquet": "parquet",
}
