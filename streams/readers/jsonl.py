"""JSON lines: one event per line.

``{"id":"e1","type":"A","time":"2026-01-01T00:00:00Z" or whole microseconds,"key":"k","data":{...}}``: the plain form of
``forms.plain`` under the default mapping. Further members of a line are ignored, except where the key option names
one. Empty lines are skipped.
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
from streams.forms.parsing import MISSING, read_path, require_object
from streams.forms.plain import parse_plain
from streams.keys import places_of
from streams.readers.assembling import Assembly
from streams.readers.options import Columns, ReaderOptions

_FORM = '{"id":...,"type":...,"time":...,"key":...,"data":{...}}'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """The events of a JSON lines file by time, ties in file order.

    Raises:
        EventFileError: Lines that are no events.
    """
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
    """The event of a line; ``assembly`` gives the time where file order counts.

    Raises:
        EventRejected: It is none.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise EventRejected(f"not JSON: {error.msg} at column {error.colno}; a line is {_FORM}") from error
    line = require_object(value)
    path = declaration.mapping.time
    found = read_path(line, path)
    time_us = assembly.next_time_us(None if found is MISSING else found, f'give the line a "{path}"')
    event = parse_plain(with_value(line, path, time_us), declaration)
    if declaration.mapping.data is not None:
        return event
    rest = _attributes(line, declaration)
    chosen = assembly.options.columns.attributes
    return replace(event, data=rest if chosen is None else {name: rest[name] for name in chosen if name in rest})


def declaration_of(options: ReaderOptions) -> StreamDeclaration:
    """A stream that has its events as the options say. Where they map anything, what is not mapped is an attribute.

    Raises:
        DeclarationError: A path has an empty part.
    """
    columns, usual = options.columns, FieldMapping()
    if columns == Columns():
        return StreamDeclaration(name="file", key=options.key or "key")
    mapping = FieldMapping(
        id=columns.id or usual.id, type=columns.type or usual.type, time=columns.time or usual.time, data=None
    )
    return StreamDeclaration(name="file", key=options.key or "key", mapping=mapping)


def with_value(line: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """The object with another value at a dotted path."""
    name, _, rest = path.partition(".")
    inner = line.get(name)
    return {**line, name: with_value(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value}


def _attributes(line: Mapping[str, Any], declaration: StreamDeclaration) -> dict[str, Any]:
    """What of a line is not its id, type or time; members of ``data`` are attributes themselves."""
    mapping = declaration.mapping
    own = {mapping.id, mapping.type, mapping.time} | ({"key"} & set(places_of(declaration.key)))
    rest = {name: value for name, value in line.items() if name not in own}
    data = rest.pop("data", {})
    return {**rest, **data} if isinstance(data, Mapping) else {**rest, "data": data}
