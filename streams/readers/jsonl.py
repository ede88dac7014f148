"""JSON lines: one event per line.

``{"id":"e1","type":"A","time":"2026-01-01T00:00:00Z" or whole microseconds,"key":"k","data":{...}}``: the plain form of
``streams.plain`` under the default mapping. Further members of a line are ignored, except where the key option names
one. Empty lines are skipped.
"""

from __future__ import annotations

import io
from pathlib import Path

import orjson

from streams.declaration import StreamDeclaration
from streams.errors import EventRejected
from streams.event import Event
from streams.parsing import require_object
from streams.plain import parse_plain
from streams.readers.assembling import Assembly
from streams.readers.options import ReaderOptions

_FORM = '{"id":...,"type":...,"time":...,"key":...,"data":{...}}'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """The events of a JSON lines file by time, ties in file order.

    Raises:
        EventFileError: Lines that are no events, or ids that come twice.
    """
    declaration = StreamDeclaration(name="file", key=options.key or "key")
    assembly = Assembly(path, options)
    for number, line in enumerate(stream, start=1):
        text = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).strip()
        if not text:
            continue
        try:
            assembly.take(number, read_line(text, declaration, assembly))
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
    time_us = assembly.next_time_us(line.get("time"), 'give the line a "time"')
    return parse_plain({**line, "time": time_us}, declaration)
