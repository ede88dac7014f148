"""CSV: a header, then one event per row.

Columns ``type``, ``time`` and ``key``, or those that the options name instead, are required (``time`` not when file
order counts); ``id`` may be absent: then an event is ``<key>:<n>``, the n-th of its key in the file. Every
other column is an attribute whose values are read one by one: empty is null, ``true`` and ``false`` are booleans, whole
and decimal numbers are numbers, and anything else, numbers with leading zeros or beyond 64 bits included, is text. A
column that the key option names is an attribute too.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.keys import KeyForm, places_of, require_place
from streams.nearest import listed
from streams.readers.assembling import Assembly, attribute_name
from streams.readers.options import ReaderOptions

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: Mapping[str, bool | None] = {"": None, "true": True, "false": False}


def read_comma_separated(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """The events of a CSV file by time, ties in file order.

    Raises:
        EventFileError: A header without the columns that are needed, or rows that are no events.
    """
    assembly = Assembly(path, options)
    columns: CellPlaces | None = None
    for line, row in read_rows(stream, path):
        if columns is None:
            columns = read_header(row, path, options)
            continue
        try:
            event = read_row(row, columns, assembly)
        except EventRejected as error:
            assembly.refuse(line, error)
            continue
        if columns.id is None:
            assembly.take_numbered(event)
        else:
            assembly.take(event)
    if columns is None:
        raise EventFileError(f"{path}: no header; the first line names the columns id, type, time, key", file=str(path))
    return assembly.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlaces:
    """Where a row holds what; indices into the row."""

    width: int
    type: int
    key: int | Mapping[str, int]
    id: int | None
    time: int | None
    attributes: tuple[tuple[int, str], ...]
    time_name: str


def read_rows(stream: io.BufferedReader, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line that each ends on; empty lines are skipped.

    Raises:
        EventFileError: The text is not CSV, or not UTF-8.
    """
    rows = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise EventFileError(f"{path}: line {rows.line_num}: not CSV: {error}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise EventFileError(f"{path}: after line {rows.line_num}: not UTF-8: {error}", file=str(path)) from error


def refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Refuse a header that names a column twice.

    Raises:
        EventFileError: It does.
    """
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise EventFileError(f"{path}: header: column {', '.join(twice)} comes twice", file=str(path))


def width_fault(row: Sequence[str], width: int) -> str | None:
    """Why a row does not fit its header, in words; None if it does."""
    return None if len(row) == width else f"{len(row)} values for {width} columns; quote values that contain commas"


def read_header(names: list[str], path: Path, options: ReaderOptions) -> CellPlaces:
    """Where the rows under a header have what.

    Raises:
        EventFileError: A column is missing, or there twice.
    """
    refuse_repeated(names, path)
    index = {name: place for place, name in enumerate(names)}
    at = _places(options, index)
    wanted = {"--type": at.type, **_key_options(at.key)} | ({"--time": at.time} if options.times == "event" else {})
    wanted |= {"--id": at.id} if at.id is not None else {}
    wanted |= {f"--attributes ({name})": name for name in options.columns.attributes or ()}
    missing = {option: name for option, name in wanted.items() if name not in index}
    if missing:
        advice = "" if "--time" not in missing else "; without times, use the order of the file (--times file)"
        raise EventFileError(
            f"{path}: header: no column {', '.join(missing.values())} among {listed(names)}, separated by commas; "
            f"name the column with {', '.join(missing)}{advice}",
            file=str(path),
            missing=list(missing.values()),
        )
    own = {at.id, at.type, at.time} | ({"key"} & set(places_of(at.key)))
    attributes = options.columns.attributes
    return CellPlaces(
        width=len(names),
        type=index[at.type],
        key={name: index[place] for name, place in at.key.items()} if isinstance(at.key, Mapping) else index[at.key],
        id=None if at.id is None else index[at.id],
        time=index.get(at.time),
        time_name=at.time,
        attributes=tuple(
            (place, name)
            for name, place in index.items()
            if (name not in own if attributes is None else name in attributes)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Names of columns."""

    id: str | None
    type: str
    time: str
    key: KeyForm


def _places(options: ReaderOptions, index: Mapping[str, int]) -> _Places:
    columns = options.columns
    return _Places(
        id=columns.id or ("id" if "id" in index else None),
        type=columns.type or "type",
        time=columns.time or "time",
        key=_key_columns("key" if options.key is None else options.key, index),
    )


def _key_columns(key: KeyForm, index: Mapping[str, int]) -> KeyForm:
    if not isinstance(key, Mapping):
        return attribute_name(key, index)
    return {event_type: attribute_name(name, index) for event_type, name in key.items()}


def _key_options(key: KeyForm) -> dict[str, str]:
    """The columns of the key by the options that name them."""
    return {f"--key {name}=": place for name, place in key.items()} if isinstance(key, Mapping) else {"--key": key}


def read_row(row: list[str], columns: CellPlaces, assembly: Assembly) -> Event:
    """The event of a row; ``assembly`` gives the time where file order counts, and an id where there is none.

    Raises:
        EventRejected: It is none.
    """
    if fault := width_fault(row, columns.width):
        raise EventRejected(fault)
    written = "" if columns.time is None else row[columns.time]
    time_us = assembly.next_time_us(written or None, f"fill the column {columns.time_name}")
    key = row[require_place(columns.key, row[columns.type])]
    if not key:
        raise EventRejected("the correlation key is empty; fill the key's column", field="key")
    return Event(
        id=assembly.next_id(key) if columns.id is None else row[columns.id],
        type=row[columns.type],
        time_us=time_us,
        key=key,
        data={name: infer_value(row[place]) for place, name in columns.attributes},
    )


def infer_value(text: str) -> str | int | float | bool | None:
    """What one cell says; see the module."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        number = int(text)
        return number if -(2**63) <= number < 2**63 else text
    if _DECIMAL.fullmatch(text) and any(mark in text for mark in ".eE"):
        value = float(text)
        return value if math.isfinite(value) else text
    return text
