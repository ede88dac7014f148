"""Conversion of plain JSON objects to and from events, by the stream's declared mapping.

The mapping has the paths of id, type, time and attributes. The declaration's ``key`` is a path in the same object, or a
path by event type.

A time is RFC 3339 text or a number since 1970, whose unit follows from its magnitude, unless the mapping declares
another form. If the declaration has the default key ``subject``, which plain objects seldom contain, a top-level
``key`` is used if ``subject`` is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.declaration import StreamDeclaration
from streams.errors import EventRejected
from streams.event import Event
from streams.forms.parsing import (
    MISSING,
    check_type,
    read_path,
    require_data,
    require_name,
    require_object,
    require_text,
)
from streams.keys import require_place
from streams.timestamps import format_time, parse_rfc3339


def parse_plain(value: object, declaration: StreamDeclaration) -> Event:
    """Read an event from a plain JSON object; raises ``EventRejected`` if a mapped part is missing or malformed."""
    source = require_object(value)
    mapping = declaration.mapping
    event_id = plain_id(source, mapping.id)
    event_type = require_text(read_path(source, mapping.type), mapping.type)
    check_type(event_type, declaration)
    moment = read_path(source, mapping.time)
    if moment is MISSING or moment is None:
        raise EventRejected(
            f"{mapping.time!r} is missing; send the time of the event, in RFC 3339 or as a number since 1970",
            field=mapping.time,
        )
    if isinstance(moment, str) and mapping.clock.is_exact:
        time_us = parse_rfc3339(moment)
    else:
        time_us = mapping.clock.read(moment)
    data = require_data(source if mapping.data is None else read_path(source, mapping.data), mapping.data or "event")
    key = _key(source, require_place(declaration.key, event_type))
    return Event(id=event_id, type=event_type, time_us=time_us, key=key, data=data)


def render_plain(event: Event) -> dict[str, Any]:
    """Convert an event to a plain object, such as a line of a JSONL file. It fits the default field mapping.

    The object has the correlation key as ``key``.
    """
    return {
        "id": event.id,
        "type": event.type,
        "time": format_time(event.time_us),
        "key": event.key,
        "data": dict(event.data),
    }


def plain_id(source: Mapping[str, Any], path: str | tuple[str, ...]) -> str:
    """Return the text of the id at a path. With several paths, the values are joined by colons."""
    paths = (path,) if isinstance(path, str) else path
    return ":".join(require_name(read_path(source, part), part) for part in paths)


def _key(source: Mapping[str, Any], path: str) -> str:
    value = read_path(source, path)
    if value is MISSING and path == "subject":
        return require_name(source.get("key", MISSING), "key")
    return require_name(value, path)
