"""Control records: what the log says besides events. They take effect at their place in each shard.

Bodies are JSON objects with a ``format`` number; ``docs/log-format.md`` shows them. Writer and reader are both here, so
that whoever appends to the log and the shards that apply it agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import orjson

from streams.declaration import StreamDeclaration
from streams.errors import ControlRecordError
from streams.records import RecordKind
from streams.timestamps import EARLIEST_US, LATEST_US
from streams.work_budget import USUAL_BUDGET, WorkBudget

FORMAT_VERSION = 1

_SWITCH = "constraints"

Start: TypeAlias = Literal["fresh", "migrate"]
TickCause: TypeAlias = Literal["events", "clock"]


@dataclass(frozen=True, slots=True)
class StreamOn:
    """A stream exists from here on."""

    declaration: StreamDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternOn:
    """A pattern is matched from here on, by this version; another version of it stops, its partial matches included.

    Where it ``start``s with ``migrate``, the other version goes on for the partial matches that it has.

    Attributes:
        name: Also in the text.
        version: Counts from 1 for each name and never repeats.
        text: As posted.
        is_guarded: Whether the stream's constraints end its partial matches early.
        start: What becomes of the partial matches of another version: they go, or they go on.
        route: Name of the further key whose traces it looks at; empty for those of the correlation key.
        budget: How much work it may cost.
    """

    name: str
    version: int
    text: str
    is_guarded: bool = True
    start: Start = "fresh"
    route: str = ""
    budget: WorkBudget = USUAL_BUDGET


@dataclass(frozen=True, slots=True)
class PatternOff:
    """A pattern stops here, its partial matches included."""

    name: str


@dataclass(frozen=True, slots=True)
class PatternPause:
    """A pattern sees nothing from here on, and its partial matches go; ``PatternOn`` with its version resumes it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The stream's event time has been seen to reach a time.

    Attributes:
        time_us: Before the stream's lateness is subtracted.
        cause: What told: events of another shard, or the wall clock of a quiet stream.
    """

    time_us: int
    cause: TickCause


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnd:
    """The trace of a key ends here.

    Attributes:
        key: Its correlation key.
        time_us: When it ended, in event time; at the newest time that the shard knows, if that is earlier or for None.
    """

    key: str
    time_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Punctuation:
    """A promise about the events that come after this place; at least one of both members is there.

    Attributes:
        before_us: None of them has an earlier time.
        key: None of them is of this correlation key.
    """

    before_us: int | None = None
    key: str | None = None


ControlRecord: TypeAlias = (
    StreamOn | PatternOn | PatternOff | PatternPause | ConstraintsOn | Tick | TraceEnd | Punctuation
)

KINDS: Mapping[type[ControlRecord], RecordKind] = {
    StreamOn: RecordKind.STREAM_ON,
    PatternOn: RecordKind.PATTERN_ON,
    PatternOff: RecordKind.PATTERN_OFF,
    PatternPause: RecordKind.PATTERN_PAUSE,
    ConstraintsOn: RecordKind.CONSTRAINTS_ON,
    Tick: RecordKind.TICK,
    TraceEnd: RecordKind.TRACE_END,
    Punctuation: RecordKind.PUNCTUATION,
}


def encode_control(record: ControlRecord) -> bytes:
    """The body that stands for a record in the log; its kind is ``KINDS[type(record)]``."""
    return orjson.dumps({"format": FORMAT_VERSION, **_fields(record)})


def _fields(record: ControlRecord) -> dict[str, Any]:
    """The members of a body; those of ``PatternOn`` that have a usual value are there only where they have another."""
    match record:
        case StreamOn(declaration):
            return {"declaration": declaration.to_json()}
        case PatternOn():
            return {
                "name": record.name,
                "version": record.version,
                "text": record.text,
                **({} if record.is_guarded else {_SWITCH: "off"}),
                **({} if record.start == "fresh" else {"start": record.start}),
                **({"route": record.route} if record.route else {}),
                **({} if record.budget == USUAL_BUDGET else {"work": record.budget.to_json()}),
            }
        case Tick():
            return {"time": record.time_us, "cause": record.cause}
        case TraceEnd():
            return {"key": record.key, "time": record.time_us}
        case Punctuation():
            return {"before": record.before_us, "key": record.key}
        case _:
            return asdict(record)


def decode_control(kind: RecordKind, body: bytes) -> ControlRecord:
    """Read the body of a control record.

    Raises:
        ControlRecordError: It is not JSON, of an unknown format, or misses a part.
        DeclarationError: A stream declaration misses a part or contradicts itself.
    """
    if kind not in _READERS:
        raise ControlRecordError("events are not a control record")
    return _READERS[kind](kind, _object(kind, body))


def _pattern_on(kind: RecordKind, found: Mapping[str, Any]) -> PatternOn:
    return PatternOn(
        name=_text(kind, found, "name"),
        version=_version(kind, found),
        text=_text(kind, found, "text"),
        is_guarded=_choice(kind, found, _SWITCH, ("on", "off")) == "on",
        start=cast("Start", _choice(kind, found, "start", get_args(Start))),
        route=_text(kind, found, "route") if "route" in found else "",
        budget=_budget(kind, found),
    )


def _budget(kind: RecordKind, found: Mapping[str, Any]) -> WorkBudget:
    try:
        return WorkBudget.from_json(found.get("work", {}))
    except ValueError as error:
        raise ControlRecordError(f"{kind.value} record: work: {error}", field="work") from error


def _constraints_on(kind: RecordKind, found: Mapping[str, Any]) -> ConstraintsOn:
    document = found.get("document")
    if not isinstance(document, dict):
        raise ControlRecordError(f"{kind.value} record: document is not a JSON object", field="document")
    return ConstraintsOn(name=_text(kind, found, "name"), version=_version(kind, found), document=document)


def _tick(kind: RecordKind, found: Mapping[str, Any]) -> Tick:
    time_us = _time(kind, found, "time")
    if time_us is None:
        raise ControlRecordError(f"{kind.value} record: time is None; microseconds UTC are wanted", field="time")
    return Tick(time_us=time_us, cause=cast("TickCause", _choice(kind, found, "cause", get_args(TickCause))))


def _trace_end(kind: RecordKind, found: Mapping[str, Any]) -> TraceEnd:
    return TraceEnd(key=_text(kind, found, "key"), time_us=_time(kind, found, "time"))


def _punctuation(kind: RecordKind, found: Mapping[str, Any]) -> Punctuation:
    key = None if found.get("key") is None else _text(kind, found, "key")
    before_us = _time(kind, found, "before")
    if key is None and before_us is None:
        raise ControlRecordError(f"{kind.value} record: it has neither a time before nor a key", field="before")
    return Punctuation(before_us=before_us, key=key)


_READERS: Mapping[RecordKind, Callable[[RecordKind, Mapping[str, Any]], ControlRecord]] = {
    RecordKind.STREAM_ON: lambda _, found: StreamOn(StreamDeclaration.from_json(found.get("declaration"))),
    RecordKind.PATTERN_ON: _pattern_on,
    RecordKind.PATTERN_OFF: lambda kind, found: PatternOff(_text(kind, found, "name")),
    RecordKind.PATTERN_PAUSE: lambda kind, found: PatternPause(_text(kind, found, "name")),
    RecordKind.CONSTRAINTS_ON: _constraints_on,
    RecordKind.TICK: _tick,
    RecordKind.TRACE_END: lambda kind, found: TraceEnd(
        key=_text(kind, found, "key"), time_us=_time(kind, found, "time")
    ),
    RecordKind.PUNCTUATION: _punctuation,
}


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


def _time(kind: RecordKind, found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not EARLIEST_US <= value <= LATEST_US:
        raise ControlRecordError(
            f"{kind.value} record: {name} is {value!r}; microseconds UTC in the years 1 to 9999 are wanted", field=name
        )
    return value


def _choice(kind: RecordKind, found: Mapping[str, Any], name: str, known: Sequence[str]) -> str:
    """One of some words; the first of them where there is none."""
    value = found.get(name, known[0])
    if value not in known:
        wanted = " or ".join(map(repr, known))
        raise ControlRecordError(f"{kind.value} record: {name} is {value!r}; {wanted} is wanted", field=name)
    return str(value)
