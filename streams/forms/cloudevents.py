"""Conversion of CloudEvents 1.0 in JSON, structured mode, to and from events.

``time`` is the occurrence time, and is required here; ``data`` has the attributes. The declaration gives the path of
the correlation key, possibly by event type: ``subject``, ``data.<path>``, or any other top-level (extension) attribute.
The intake recognises a repeated event by ``source`` and ``id``. Alerts name events by ``id`` alone, so producers of the
same stream should not use the same ids.
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
    with_value,
)
from streams.keys import KeyForm, place_for, require_place
from streams.showing import shown
from streams.timestamps import format_time, parse_rfc3339

SPEC_VERSION = "1.0"


def parse_cloudevent(value: object, declaration: StreamDeclaration) -> Event:
    """Read an event from a CloudEvent 1.0 in JSON; raises ``EventRejected`` if a required part is missing."""
    envelope = require_object(value)
    _check_envelope(envelope)
    event_id = require_text(envelope.get("id", MISSING), "id")
    event_type = require_text(envelope.get("type", MISSING), "type")
    check_type(event_type, declaration)
    time_us = _occurrence_time(envelope)
    data = require_data(envelope.get("data", MISSING), "data")
    path = require_place(declaration.key, event_type)
    key = require_name(read_path(envelope, path), path)
    return Event(id=event_id, type=event_type, time_us=time_us, key=key, data=data)


def render_cloudevent(event: Event, source: str) -> dict[str, Any]:
    """Convert an event to a CloudEvent in JSON, with its key as ``subject``."""
    return {
        "specversion": SPEC_VERSION,
        "id": event.id,
        "source": source,
        "type": event.type,
        "time": format_time(event.time_us),
        "subject": event.key,
        "datacontenttype": "application/json",
        "data": dict(event.data),
    }


def keyed_cloudevent(event: Event, source: str, key: KeyForm) -> dict[str, Any]:
    """Convert an event to a CloudEvent. Its key is at the path for its type, or in ``subject`` without a path."""
    path = place_for(key, event.type) or "subject"
    rendered = render_cloudevent(event, source)
    if path == "subject":
        return rendered
    del rendered["subject"]
    key_value = read_path(rendered, path)
    has_number = isinstance(key_value, int) and not isinstance(key_value, bool) and str(key_value) == event.key
    return rendered if has_number else with_value(rendered, path, event.key)


def _check_envelope(envelope: Mapping[str, Any]) -> None:
    version = envelope.get("specversion")
    if version != SPEC_VERSION:
        fault = "is missing" if version is None else f"is {shown(version)}"
        raise EventRejected(f"'specversion' {fault}; it must be {SPEC_VERSION!r}", field="specversion")
    require_text(envelope.get("source", MISSING), "source")
    if "data_base64" in envelope:
        raise EventRejected(
            "'data_base64' cannot be read; send the attributes as a JSON object in 'data'", field="data_base64"
        )
    content_type = envelope.get("datacontenttype")
    if content_type is not None and not _is_json(content_type):
        raise EventRejected(
            f"'datacontenttype' {shown(content_type)} cannot be read; send application/json or leave it out",
            field="datacontenttype",
        )


def _is_json(content_type: object) -> bool:
    if not isinstance(content_type, str):
        return False
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type in ("application/json", "text/json") or media_type.endswith("+json")


def _occurrence_time(envelope: Mapping[str, Any]) -> int:
    value = envelope.get("time")
    if value is None:
        raise EventRejected("'time' is missing; send the time of the event, in RFC 3339", field="time")
    if not isinstance(value, str):
        raise EventRejected(f"'time' of a CloudEvent is RFC 3339 text, got {shown(value)}", field="time")
    return parse_rfc3339(value)
