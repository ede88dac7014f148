"""Reads CSV: a header, then one event per row.

The columns ``type``, ``time`` and ``key`` are required, or the columns that the options name instead of them. A time is
not required if lines are numbered. Without a column ``id``, an event has the id ``<key>:<n>``, the n-th of its key in
the file. Every other column is an attribute. If all its cells have one form of numbers or booleans (``csv_form``), its
values are numbers or booleans, otherwise texts; an empty cell is null. A column that the key option names is an
attribute too.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.keys import KeyForm, places_of, require_place
from streams.nearest import listed
from streams.readers.assembling import Assembly, attribute_name
from streams.readers.csv_form import DELIMITERS, CsvForm, examine
from streams.readers.options import ReaderOptions


def read_comma_separated(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """Read the events of a CSV file by time. Ties stay in file order.

    Raises ``EventFileError`` if the header lacks required columns, or rows are not valid events.
    """
    form = form_of(path, options)
    assembly = Assembly(path, form.options)
    columns: CellPlaces | None = None
    for line, row in form.rows(stream, path):
        if columns is None:
            columns = read_header(row, path, options, form)
            continue
        try:
            event = read_row(row, columns, assembly)
        except EventRejected as error:
            assembly.refuse(line, error)
            continue
        if not columns.ids:
            assembly.take_numbered(event)
        else:
            assembly.take(event)
    if columns is None:
        raise EventFileError(f"{path}: no header; the first line names the columns id, type, time, key", file=str(path))
    return assembly.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlaces:
    """The columns of an event's members, as indices into a row."""

    width: int
    type: int
    key: int | Mapping[str, int]
    ids: tuple[int, ...]
    time: int | None
    attributes: tuple[tuple[int, str], ...]
    time_name: str
    form: CsvForm


def form_of(path: Path, options: ReaderOptions) -> CsvForm:
    """Detect the form of a CSV file of events, such as its delimiter, before any event is read."""
    places = _places(options, {})
    columns = {places.type, places.time, *places.ids, *places_of(places.key)}
    return examine(path, options, {*columns, *(name.removeprefix("data.") for name in columns)}, places.time)


def refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Reject a header that names a column twice."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise EventFileError(f"{path}: header: column {', '.join(repeated)} comes twice", file=str(path))


def width_fault(row: Sequence[str], width: int) -> str | None:
    """Return why a row does not fit a header of ``width`` columns, in words. Return None if it fits."""
    return None if len(row) == width else f"{len(row)} values for {width} columns; quote values that contain commas"


def read_header(names: list[str], path: Path, options: ReaderOptions, form: CsvForm) -> CellPlaces:
    """Return the column indices of an event's members in a header. A missing or repeated column is rejected."""
    refuse_repeated(names, path)
    index = {name: place for place, name in enumerate(names)}
    places = _places(options, index)
    columns = {"--type": places.type, **_key_options(places.key)} | (
        {} if options.times == "line" else {"--time": places.time}
    )
    columns |= {f"--id ({name})" if len(places.ids) > 1 else "--id": name for name in places.ids}
    columns |= {f"--attributes ({name})": name for name in options.columns.attributes or ()}
    missing = {option: name for option, name in columns.items() if name not in index}
    if missing:
        advice = "" if "--time" not in missing else "; without times, number the lines (--times line)"
        raise EventFileError(
            f"{path}: header: no column {', '.join(missing.values())} among {listed(names)}, separated by "
            f"{DELIMITERS.get(form.delimiter, repr(form.delimiter))}; "
            f"name the column with {', '.join(missing)}{advice}",
            file=str(path),
            missing=list(missing.values()),
        )
    used = {*(places.ids if len(places.ids) == 1 else ()), places.type, places.time} | (
        {"key"} & set(places_of(places.key))
    )
    attributes = options.columns.attributes
    return CellPlaces(
        width=len(names),
        type=index[places.type],
        key={name: index[place] for name, place in places.key.items()}
        if isinstance(places.key, Mapping)
        else index[places.key],
        ids=tuple(index[name] for name in places.ids),
        time=index.get(places.time),
        form=form,
        time_name=places.time,
        attributes=tuple(
            (place, name)
            for name, place in index.items()
            if (name not in used if attributes is None else name in attributes)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    ids: tuple[str, ...]
    type: str
    time: str
    key: KeyForm


def _places(options: ReaderOptions, index: Mapping[str, int]) -> _Places:
    columns = options.columns
    return _Places(
        ids=columns.ids or (("id",) if "id" in index else ()),
        type=columns.type or "type",
        time=columns.time or "time",
        key=_key_columns("key" if options.key is None else options.key, index),
    )


def _key_columns(key: KeyForm, index: Mapping[str, int]) -> KeyForm:
    if not isinstance(key, Mapping):
        return attribute_name(key, index)
    return {event_type: attribute_name(name, index) for event_type, name in key.items()}


def _key_options(key: KeyForm) -> dict[str, str]:
    return {f"--key {name}=": place for name, place in key.items()} if isinstance(key, Mapping) else {"--key": key}


def _id(row: list[str], places: tuple[int, ...]) -> str:
    parts = [row[place] for place in places]
    if not all(parts):
        raise EventRejected("the id is empty; fill its column, or leave the column out to have ids made", field="id")
    return ":".join(parts)


def read_row(row: list[str], columns: CellPlaces, assembly: Assembly) -> Event:
    """Read the event of a row of CSV.

    ``assembly`` counts rows and makes the id of an event without one. With ``times: line``, it also makes the time.
    """
    if fault := width_fault(row, columns.width):
        raise EventRejected(fault)
    written = "" if columns.time is None else row[columns.time]
    time_us = assembly.next_time_us(written or None, f"fill the column {columns.time_name}")
    key = row[require_place(columns.key, row[columns.type])]
    if not key:
        raise EventRejected("the correlation key is empty; fill the key's column", field="key")
    return Event(
        id=_id(row, columns.ids) if columns.ids else assembly.next_id(key),
        type=row[columns.type],
        time_us=time_us,
        key=key,
        data={name: columns.form.value(name, row[place]) for place, name in columns.attributes},
    )
