"""Reads JSON lines, which have one event per line.

``{"id":"e1","type":"A","time":"2026-01-01T00:00:00Z" or a number,"key":"k","data":{...}}`` is the plain form of
``forms.plain`` under the default mapping. Other members of a line are ignored, except one that the key option names.
Empty lines are skipped.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from streams.declaration import FieldMapping, StreamDeclaration
from streams.errors import EventRejected
from streams.event import Event
from streams.forms.extent import check_extent, decode_json
from streams.forms.parsing import MISSING, read_path, require_object, with_value
from streams.forms.plain import parse_plain, plain_id
from streams.keys import places_of
from streams.readers.assembling import Assembly
from streams.readers.options import Columns, ReaderOptions
from streams.time_forms import TimeForm

_FORM = '{"id":...,"type":...,"time":...,"key":...,"data":{...}}'
IN_MICROSECONDS = TimeForm(unit="us")
"""The form of times after reading."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """Read the events of a JSON lines file by time. Ties stay in file order."""
    declaration = declaration_of(options)
    assembly = Assembly(path, options)
    for number, line in enumerate(stream, start=1):
        text = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).strip()
        if not text:
            continue
        try:
            assembly.take(read_line(text, declaration, assembly))
        except EventRejected as error:
            assembly.refuse(number, error)
    return assembly.finish()


def read_line(text: bytes, declaration: StreamDeclaration, assembly: Assembly) -> Event:
    """Read the event of a JSON line.

    ``assembly`` counts lines and makes the id of an event without one. With ``times: line``, it also makes the time.
    """
    try:
        value = decode_json(text)
    except orjson.JSONDecodeError as error:
        if not is_utf8(text):
            raise EventRejected("not UTF-8; name the encoding of the file, such as --encoding windows-1252") from error
        raise EventRejected(f"not JSON: {error.msg} at column {error.colno}; a line is {_FORM}") from error
    return read_object(value, declaration, assembly)


def is_utf8(text: bytes) -> bool:
    """Return whether bytes are text in UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_object(value: object, declaration: StreamDeclaration, assembly: Assembly) -> Event:
    """Read the event of a decoded JSON line, as ``read_line`` does."""
    line = require_object(value)
    check_extent(line)
    path = declaration.mapping.time
    time_value = read_path(line, path)
    time_us = assembly.next_time_us(None if time_value is MISSING else time_value, f'give the line a "{path}"')
    event = identified(line, time_us, declaration, assembly)
    if declaration.mapping.data is not None:
        return event
    attributes = _attributes(line, declaration)
    names = assembly.options.columns.attributes
    return replace(
        event, data=attributes if names is None else {name: attributes[name] for name in names if name in attributes}
    )


def identified(line: Mapping[str, Any], time_us: int, declaration: StreamDeclaration, assembly: Assembly) -> Event:
    """Read the event of an object whose time is already known.

    If the object has no id, and no option names the place of ids, the event gets a numbered id from ``assembly``.
    """
    mapping = declaration.mapping
    timed = with_value(line, mapping.time, time_us)
    if not isinstance(mapping.id, str):
        return replace(parse_plain(timed, declaration), id=plain_id(line, mapping.id))
    if assembly.options.columns.id is not None or read_path(line, mapping.id) is not MISSING:
        return parse_plain(timed, declaration)
    event = parse_plain(with_value(timed, mapping.id, "?"), declaration)
    return replace(event, id=assembly.next_id(event.key))


def declaration_of(options: ReaderOptions) -> StreamDeclaration:
    """Return the declaration of a stream whose field mapping reads lines as these options say.

    If the options say where a member is, all other members of a line are attributes.
    """
    columns, usual = options.columns, FieldMapping()
    if columns == Columns():
        return StreamDeclaration(name="file", key=options.key or "key", mapping=FieldMapping(clock=IN_MICROSECONDS))
    mapping = FieldMapping(
        id=columns.id or usual.id,
        type=columns.type or usual.type,
        time=columns.time or usual.time,
        data=columns.data,
        clock=IN_MICROSECONDS,
    )
    return StreamDeclaration(name="file", key=options.key or "key", mapping=mapping)


def _attributes(line: Mapping[str, Any], declaration: StreamDeclaration) -> dict[str, Any]:
    mapping = declaration.mapping
    ids = {mapping.id} if isinstance(mapping.id, str) else set()
    mapped = ids | {mapping.type, mapping.time} | ({"key"} & set(places_of(declaration.key)))
    members = {name: value for name, value in line.items() if name not in mapped}
    data = members.pop("data", {})
    return {**members, **data} if isinstance(data, Mapping) else {**members, "data": data}
