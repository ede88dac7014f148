"""Control records: what the log says besides events. They take effect at their place in each shard.

Bodies are JSON objects with a ``format`` number; ``docs/log-format.md`` shows them. Writer and reader are both here, so
that whoever appends to the log and the shards that apply it agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import orjson

from streams.declaration import StreamDeclaration
from streams.errors import ControlRecordError
from streams.records import RecordKind

FORMAT_VERSION = 1

_SWITCH = "constraints"


@dataclass(frozen=True, slots=True)
class StreamOn:
    """A stream exists from here on."""

    declaration: StreamDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternOn:
    """A pattern is matched from here on, by this version; another version of it stops, its partial matches included.

    Attributes:
        name: Also in the text.
        version: Counts from 1 for each name and never repeats.
        text: As posted.
        is_guarded: Whether the stream's constraints end its partial matches early.
    """

    name: str
    version: int
    text: str
    is_guarded: bool = True


@dataclass(frozen=True, slots=True)
class PatternOff:
    """A pattern stops here, its partial matches included."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsOn:
    """Traces that begin after this place follow this version of the stream's constraints; open ones keep theirs.

    Attributes:
        name: The stream's name.
        version: Counts from 1 within the stream and never repeats.
        document: In the canonical form of ``constraints.to_document``, the stream's end events included.
    """

    name: str
    version: int
    document: Mapping[str, Any]


ControlRecord: TypeAlias = StreamOn | PatternOn | PatternOff | ConstraintsOn

KINDS: Mapping[type[ControlRecord], RecordKind] = {
    StreamOn: RecordKind.STREAM_ON,
    PatternOn: RecordKind.PATTERN_ON,
    PatternOff: RecordKind.PATTERN_OFF,
    ConstraintsOn: RecordKind.CONSTRAINTS_ON,
}


def encode_control(record: ControlRecord) -> bytes:
    """The body that stands for a record in the log; its kind is ``KINDS[type(record)]``."""
    return orjson.dumps({"format": FORMAT_VERSION, **_fields(record)})


def _fields(record: ControlRecord) -> dict[str, Any]:
    """The members of a body; ``constraints`` is there only where it is ``off``."""
    if isinstance(record, StreamOn):
        return {"declaration": record.declaration.to_json()}
    fields = asdict(record)
    if isinstance(record, PatternOn) and not fields.pop("is_guarded"):
        fields[_SWITCH] = "off"
    return fields


def decode_control(kind: RecordKind, body: bytes) -> ControlRecord:
    """Read the body of a control record.

    Raises:
        ControlRecordError: It is not JSON, of an unknown format, or misses a part.
        DeclarationError: A stream declaration misses a part or contradicts itself.
    """
    found = _object(kind, body)
    match kind:
        case RecordKind.STREAM_ON:
            return StreamOn(StreamDeclaration.from_json(found.get("declaration")))
        case RecordKind.PATTERN_ON:
            return PatternOn(
                name=_text(kind, found, "name"),
                version=_version(kind, found),
                text=_text(kind, found, "text"),
                is_guarded=_switch(kind, found),
            )
        case RecordKind.PATTERN_OFF:
            return PatternOff(_text(kind, found, "name"))
        case RecordKind.CONSTRAINTS_ON:
            document = found.get("document")
            if not isinstance(document, dict):
                raise ControlRecordError(f"{kind.value} record: document is not a JSON object", field="document")
            return ConstraintsOn(name=_text(kind, found, "name"), version=_version(kind, found), document=document)
        case RecordKind.EVENTS:
            raise ControlRecordError("events are not a control record")


def _object(kind: RecordKind, body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ControlRecordError(f"{kind.value} record: {len(body)} bytes are not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT_VERSION:
        version = found.get("format") if isinstance(found, dict) else None
        raise ControlRecordError(
            f"{kind.value} record: format {version!r} is unknown; this release reads {FORMAT_VERSION}"
        )
    return found


def _text(kind: RecordKind, found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise ControlRecordError(f"{kind.value} record: {name} is {value!r}; a non-empty text is wanted", field=name)
    return value


def _version(kind: RecordKind, found: Mapping[str, Any]) -> int:
    value = found.get("version")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ControlRecordError(
            f"{kind.value} record: version is {value!r}; a number from 1 is wanted", field="version"
        )
    return value


def _switch(kind: RecordKind, found: Mapping[str, Any]) -> bool:
    value = found.get(_SWITCH, "on")
    if value not in ("on", "off"):
        raise ControlRecordError(f"{kind.value} record: {_SWITCH} is {value!r}; 'on' or 'off' is wanted", field=_SWITCH)
    return bool(value == "on")
