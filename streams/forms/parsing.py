"""Shared parts of the external forms of an event: paths, keys, checks, and the outcome of a batch.

A batch is never rejected as a whole: accepted and rejected events are returned separately, each with its index in the
batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streams.declaration import StreamDeclaration
from streams.errors import EventRejected
from streams.event import Event, check_text
from streams.showing import shown

MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedEvents:
    """The accepted events of a batch, and the errors of the rejected ones.

    Each has its index in the batch, and indices ascend.
    """

    events: tuple[tuple[int, Event], ...]
    rejections: tuple[tuple[int, EventRejected], ...]


def parse_each(objects: Iterable[object], parse: Callable[[object], Event]) -> ParsedEvents:
    """Parse each object into an event. An object that ``parse`` rejects does not affect the others."""
    events: list[tuple[int, Event]] = []
    rejections: list[tuple[int, EventRejected]] = []
    for index, value in enumerate(objects):
        try:
            events.append((index, parse(value)))
        except EventRejected as error:
            rejections.append((index, error))
    return ParsedEvents(events=tuple(events), rejections=tuple(rejections))


def read_path(value: Mapping[str, Any], path: str) -> object:
    """Return the value at a dotted path of a JSON object, or ``MISSING``."""
    inner: object = value
    for name in path.split("."):
        if not isinstance(inner, Mapping) or name not in inner:
            return MISSING
        inner = inner[name]
    return inner


def with_value(line: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a copy of the object with ``value`` at a dotted path. Missing objects on the path are created."""
    name, _, tail = path.partition(".")
    inner = line.get(name)
    return {**line, name: with_value(inner if isinstance(inner, Mapping) else {}, tail, value) if tail else value}


def require_object(value: object) -> Mapping[str, Any]:
    """Return a value unchanged if it is a JSON object. Raises ``EventRejected`` otherwise."""
    if not isinstance(value, Mapping):
        raise EventRejected(f"an event is a JSON object, got {shown(value)}")
    return value


def require_text(value: object, name: str) -> str:
    """Return a value unchanged if it is a non-empty text in valid Unicode. Raises ``EventRejected`` otherwise."""
    if value is MISSING:
        raise EventRejected(f"{name!r} is missing; an event needs a non-empty string there", field=name)
    if not isinstance(value, str) or not value:
        raise EventRejected(f"{name!r} must be a non-empty text, got {shown(value)}", field=name)
    return check_text(value, name)


def require_name(value: object, name: str) -> str:
    """Return an id or correlation key, a non-empty text or an integer, as text. Raises ``EventRejected`` otherwise."""
    if value is MISSING:
        raise EventRejected(f"{name!r} is missing; an event needs a text or an integer there", field=name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value:
        return check_text(value, name)
    raise EventRejected(f"{name!r} must be a non-empty text or an integer, got {shown(value)}", field=name)


def require_data(value: object, name: str) -> Mapping[str, Any]:
    """Return attributes, which must be a JSON object. Return an empty object if they are missing or null."""
    if value is MISSING or value is None:
        return {}
    if not isinstance(value, Mapping):
        raise EventRejected(f"{name!r} must be a JSON object of attributes, got {shown(value)}", field=name)
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise EventRejected(f"{name!r} cannot be written as JSON: {error}", field=name) from error
    return value


def check_type(event_type: str, declaration: StreamDeclaration) -> None:
    """Reject a type that the stream does not declare."""
    if declaration.event_types and event_type not in declaration.event_types:
        raise EventRejected(
            f"event type {shown(event_type)} is not declared for stream {declaration.name!r}; "
            f"it has {', '.join(declaration.event_types)}",
            field="type",
        )
