"""Kafka records as events. Each record becomes one JSON object.

CloudEvents follow their Kafka protocol binding. In binary mode (a header ``ce_specversion``) the attributes are in
headers ``ce_*`` and ``content-type``, and the value is the data. In structured mode the value is the whole event. Any
other value is a plain JSON object, which the stream's mapping reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from streams import KeyForm
from streams.readers import RawRow, ReaderOptions, mapped_row

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

_PREFIX = "ce_"
_EXCERPT_BYTES = 4_000


def read_message(value: bytes | None, headers: Headers, max_bytes: int) -> tuple[bytes, str | None]:
    """Return the JSON text of a record's event (unchecked) and None. For a bad record, return an excerpt and the fault.

    If several headers have one name, the last one counts. A value of more than ``max_bytes`` is a fault.
    """
    if value is not None and len(value) > max_bytes:
        return value[:_EXCERPT_BYTES], f"the value has more than {max_bytes} bytes; send smaller events"
    headers_by_name = {name.lower(): content for name, content in headers}
    if _PREFIX + "specversion" in headers_by_name:
        return _binary_event(value, headers_by_name)
    if value is None:
        return b"", "the record has no value (a tombstone); an event is a JSON object in the value"
    return value, None


def read_plain(body: bytes, place: str, mapping: ReaderOptions, key: KeyForm) -> tuple[bytes, str | None]:
    """Read the event of a plain JSON record by a mapping. The result has the form of ``read_message``.

    A CloudEvent is returned unchanged, and so is a body that is not a JSON object. An event without an id gets
    ``place`` as its id: topic, partition and offset, joined by colons. ``key`` is the path of the stream's correlation
    key.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body, None  # intake reports what is wrong
    if not isinstance(value, dict) or "specversion" in value:
        return body, None
    topic, _, number = place.partition(":")
    row = mapped_row(RawRow(place=number, body=body), Path(topic), key, mapping)
    return row.body, row.fault


def _binary_event(value: bytes | None, headers: Mapping[str, bytes | None]) -> tuple[bytes, str | None]:
    excerpt = (value or b"")[:_EXCERPT_BYTES]
    event: dict[str, Any] = {}
    for name, content in headers.items():
        if name.startswith(_PREFIX) or name == "content-type":
            try:
                event[_attribute(name)] = (content or b"").decode()
            except UnicodeDecodeError as error:
                return excerpt, f"header {name} is not UTF-8: {error}"
    if value is not None and _is_json(event.get("datacontenttype")):
        try:
            event["data"] = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            return excerpt, f"the value, the data of a CloudEvent in binary mode, is not JSON: {error}"
    return orjson.dumps(event), None


def _attribute(header: str) -> str:
    return "datacontenttype" if header == "content-type" else header.removeprefix(_PREFIX)


def _is_json(content_type: object) -> bool:
    return content_type is None or "json" in str(content_type).lower()
