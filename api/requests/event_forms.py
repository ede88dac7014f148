"""Forms in which events can be sent: CloudEvents (single, batch, binary mode), plain objects, JSON lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.datastructures import Headers

from api.errors import EventForm, MalformedBody, UnsupportedMediaType
from api.requests.bodies import parse_json
from service import BatchTooLarge, EventShape, Unreadable
from streams import has_long_integer

ONE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
PLAIN = "application/json"
LINES = "application/x-ndjson"

_LINES = (LINES, "application/ndjson", "application/jsonl")
_MARK = "ce-specversion"
_PREFIX = "ce-"
_ATTRIBUTE = re.compile(r"(?!data$)[a-z0-9]+")
_WRITTEN = re.compile(rb"\S")
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentEvents:
    """The events of a request.

    Attributes:
        objects: Decoded JSON, one value per event, in order; ``Unreadable`` for a line that is not JSON.
        lines: For JSON lines, the line number of each object, from 1.
    """

    objects: Sequence[Any]
    shape: EventShape
    lines: Sequence[int] | None = None


def read_events(headers: Headers, media_type: str, body: bytes, most: int) -> SentEvents:
    """Read the events of a request.

    A body with a media type of CloudEvents is in structured mode. Otherwise, the header ``ce-specversion`` indicates
    binary mode: header fields contain the attributes, and the body contains the data.

    Raises ``BatchTooLarge`` for more than ``most`` lines (the length of an array is checked later), ``MalformedBody``
    for a body that is not JSON, and ``EventForm`` if body or headers do not fit the media type. A faulty line raises no
    error: it becomes an ``Unreadable``.
    """
    if media_type in (ONE, BATCH):
        return SentEvents(objects=_structured(body, media_type), shape="cloudevents")
    if _MARK in headers:
        return SentEvents(objects=[_binary(headers, media_type, body)], shape="cloudevents")
    if media_type in _LINES:
        return _lines(body, most)
    if media_type == PLAIN:
        return SentEvents(objects=_structured(body, media_type), shape="any")
    raise UnsupportedMediaType(
        f"media type {media_type!r} is not supported; send {ONE}, {BATCH}, {PLAIN} or {LINES}, "
        f"or one CloudEvent in binary mode, with {_MARK} and the other attributes as header fields"
    )


def _structured(body: bytes, media_type: str) -> list[Any]:
    value = parse_json(body)
    is_list = isinstance(value, list)
    if media_type == BATCH and not is_list:
        raise EventForm(f"{BATCH} is an array of CloudEvents; send one CloudEvent as {ONE}")
    if media_type == ONE and is_list:
        raise EventForm(f"{ONE} is one CloudEvent; send an array as {BATCH}")
    if not is_list and not isinstance(value, dict):
        raise EventForm("the body is neither an event (a JSON object) nor an array of events")
    return value if is_list else [value]


def _lines(body: bytes, most: int) -> SentEvents:
    texts: list[bytes] = []
    numbers: list[int] = []
    counted, end, number = 0, 0, 1
    while (written := _WRITTEN.search(body, end)) is not None:
        if len(texts) == most:
            raise BatchTooLarge(f"the request has more than {most} events; send at most {most} at a time", limit=most)
        start = body.rfind(b"\n", end, written.start()) + 1 or end
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        number += body.count(b"\n", counted, start)
        counted = start
        texts.append(body[start:end])
        numbers.append(number)
    objects: list[Any] | None = None
    if not has_long_integer(body):
        try:
            objects = list(map(orjson.loads, texts))
        except orjson.JSONDecodeError:
            objects = None
    return SentEvents(objects=list(map(_line, texts)) if objects is None else objects, shape="any", lines=numbers)


def _line(text: bytes) -> Any:
    try:
        return parse_json(text)
    except MalformedBody as error:
        detail = f"column {error.details['column']}: the line is not JSON: {error.details['reason']}"
        return Unreadable(detail=detail, text=text.decode(errors="replace"))


def _binary(headers: Headers, media_type: str, body: bytes) -> dict[str, Any]:
    attributes = {name[len(_PREFIX) :]: value for name, value in headers.items() if name.startswith(_PREFIX)}
    event: dict[str, Any] = {name: _attribute(name, value) for name, value in attributes.items()}
    if not body:
        return event
    if media_type != PLAIN and not media_type.endswith("+json"):
        raise UnsupportedMediaType(f"data of the media type {media_type!r} is not supported; send {PLAIN}")
    return {**event, "datacontenttype": media_type, "data": parse_json(body)}


def _attribute(name: str, value: str) -> str:
    if not _ATTRIBUTE.fullmatch(name):
        raise EventForm(
            f"header.ce-{name}: attributes of CloudEvents have names of small letters and digits, not 'data'"
        )
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = _ESCAPED.sub(r"\1", value[1:-1])
    try:
        return unquote(value.encode("latin-1").decode(), errors="strict")
    except UnicodeDecodeError:
        raise EventForm(f"header.ce-{name}: not UTF-8; percent-encode characters that are not ASCII") from None
