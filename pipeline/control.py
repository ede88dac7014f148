"""Control records: what the log says besides events. They take effect at their place in each shard.

Bodies are JSON objects with a ``format`` number; ``docs/log-format.md`` shows them. Writer and reader are both here, so
that whoever appends to the log and the shards that apply it agree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import orjson

from pipeline.errors import ControlRecordError
from streams import FieldMapping, RecordKind, StreamDeclaration

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOn:
    """A stream exists from here on."""

    declaration: StreamDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternOn:
    """A pattern, or a new version of it, looks at what follows."""

    name: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class PatternOff:
    """A pattern stops, and its partial matches are dropped."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsOn:
    """Traces that begin later follow this version of the stream's constraints.

    Attributes:
        name: As uploaded; for people.
        version: Counts from 1 within the stream.
        document: As uploaded, a JSON object or the text of one.
    """

    name: str
    version: int
    document: Any


ControlRecord: TypeAlias = StreamOn | PatternOn | PatternOff | ConstraintsOn

KINDS: dict[type[ControlRecord], RecordKind] = {
    StreamOn: RecordKind.STREAM_ON,
    PatternOn: RecordKind.PATTERN_ON,
    PatternOff: RecordKind.PATTERN_OFF,
    ConstraintsOn: RecordKind.CONSTRAINTS_ON,
}


def encode_control(record: ControlRecord) -> bytes:
    """The body that stands for a record in the log; its kind is ``KINDS[type(record)]``."""
    return orjson.dumps({"format": FORMAT_VERSION, **asdict(record)})


def decode_control(kind: RecordKind, body: bytes) -> ControlRecord:
    """Read the body of a control record.

    Raises:
        ControlRecordError: It is not JSON, of an unknown format, or misses a part.
        DeclarationError: A stream declaration contradicts itself.
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ControlRecordError(f"{kind.value} record: {len(body)} bytes are not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT_VERSION:
        version = found.get("format") if isinstance(found, dict) else None
        raise ControlRecordError(
            f"{kind.value} record: format {version!r} is unknown; this release reads {FORMAT_VERSION}"
        )
    match kind:
        case RecordKind.STREAM_ON:
            return StreamOn(declaration_from_json(found.get("declaration")))
        case RecordKind.PATTERN_ON:
            return PatternOn(
                name=_text(kind, found, "name"), version=_number(kind, found), text=_text(kind, found, "text")
            )
        case RecordKind.PATTERN_OFF:
            return PatternOff(_text(kind, found, "name"))
        case RecordKind.CONSTRAINTS_ON:
            document = found.get("document")
            if not isinstance(document, dict | list | str):
                raise ControlRecordError(f"{kind.value} record: document is missing")
            return ConstraintsOn(name=_text(kind, found, "name"), version=_number(kind, found), document=document)
        case RecordKind.EVENTS:
            raise ControlRecordError("events are not a control record")


def declaration_from_json(found: Any) -> StreamDeclaration:
    """Read a declaration: its fields by name, absent ones by default.

    Raises:
        ControlRecordError: Not an object of the right fields.
        DeclarationError: The declaration contradicts itself.
    """
    if not isinstance(found, dict) or not isinstance(found.get("mapping", {}), dict):
        raise ControlRecordError("stream-on record: declaration is not an object")
    try:
        return StreamDeclaration(
            name=found["name"],
            key=found.get("key", "subject"),
            event_types=tuple(found.get("event_types", ())),
            end_events=tuple(found.get("end_events", ())),
            mapping=FieldMapping(**found.get("mapping", {})),
        )
    except (KeyError, TypeError) as error:
        raise ControlRecordError(f"stream-on record: declaration has no valid {error}") from error


def _text(kind: RecordKind, found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise ControlRecordError(f"{kind.value} record: {name} is {value!r}; a non-empty text is wanted", field=name)
    return value


def _number(kind: RecordKind, found: dict[str, Any]) -> int:
    value = found.get("version")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ControlRecordError(
            f"{kind.value} record: version is {value!r}; a number from 1 is wanted", field="version"
        )
    return value
