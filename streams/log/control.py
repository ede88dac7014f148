"""Control records: the entries of the log besides events. They take effect at their place in each shard.

Bodies are JSON objects with a ``format`` number; ``docs/log-format.md`` shows them. Each record reads and writes its
own body, so that writers of the log and the shards that apply it agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, cast, get_args

import orjson

from streams.declaration import StreamDeclaration
from streams.errors import ControlRecordError, ForestallError
from streams.key_ranges import KeyRange
from streams.log.keys_closed import KeysClosed
from streams.log.members import Members
from streams.log.operators import Definition, Input
from streams.log.records import RecordKind
from streams.tables import TableVersion
from streams.work_budget import USUAL_BUDGET, WorkBudget

FORMAT_VERSION = 1

_SWITCH = "constraints"

Start: TypeAlias = Literal["fresh", "migrate", "keep"]
TickCause: TypeAlias = Literal["events", "clock"]


class ControlRecord(Protocol):
    """The contract of every control record; ``CONTROL_RECORDS`` lists them all."""

    KIND: ClassVar[RecordKind]

    def to_json(self) -> dict[str, Any]:
        """The members of the record's body."""
        ...

    @classmethod
    def from_json(cls, members: Members) -> Self:
        """Read the members that ``to_json`` has written; ``ControlRecordError`` if one is missing or malformed."""
        ...


@dataclass(frozen=True, slots=True)
class _Named:
    """A control record that only names a stream or a pattern."""

    name: str

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(members.text("name"))


@dataclass(frozen=True, slots=True)
class StreamOn:
    """A stream is declared, or gets a new declaration."""

    KIND: ClassVar[RecordKind] = RecordKind.STREAM_ON

    declaration: StreamDeclaration

    def to_json(self) -> dict[str, Any]:
        return {"declaration": self.declaration.to_json()}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(StreamDeclaration.from_json(members.get("declaration")))


@dataclass(frozen=True, slots=True)
class StreamOff(_Named):
    """A stream ends here with everything that belongs to it; a later ``StreamOn`` declares it again, without state."""

    KIND: ClassVar[RecordKind] = RecordKind.STREAM_OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternOn:
    """A version of a pattern begins; another version stops, its partial matches included.

    With ``start`` ``migrate``, the other version continues for its present partial matches.

    Attributes:
        version: Counts from 1 for each name and never repeats.
        is_guarded: Whether the stream's constraints terminate its partial matches early.
        route: Name of the further key whose traces it sees; empty for those of the correlation key.
    """

    KIND: ClassVar[RecordKind] = RecordKind.PATTERN_ON

    name: str
    version: int
    text: str
    is_guarded: bool = True
    start: Start = "fresh"
    route: str = ""
    budget: WorkBudget = USUAL_BUDGET
    suppression: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The members of the record's body; several are left out at their defaults."""
        return {
            "name": self.name,
            "version": self.version,
            "text": self.text,
            **({} if self.is_guarded else {_SWITCH: "off"}),
            **({} if self.start == "fresh" else {"start": self.start}),
            **({"route": self.route} if self.route else {}),
            **({} if self.budget == USUAL_BUDGET else {"work": self.budget.to_json()}),
            **self._suppression(),
        }

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(
            name=members.text("name"),
            version=members.version(),
            text=members.text("text"),
            is_guarded=members.choice(_SWITCH, ("on", "off")) == "on",
            start=cast("Start", members.choice("start", ("fresh", "migrate"))),
            route=members.text("route") if "route" in members else "",
            budget=_budget(members),
            suppression=members.json_object("suppression") if "suppression" in members else None,
        )

    def _suppression(self) -> dict[str, Any]:
        return {} if self.suppression is None else {"suppression": self.suppression}

    def definition(self, stream: str) -> Definition:
        """The pattern as an operator of a stream."""
        return Definition(
            kind="pattern",
            name=self.name,
            version=self.version,
            inputs=(Input(stream, self.route),),
            body={
                "text": self.text,
                "is_guarded": self.is_guarded,
                "budget": self.budget.to_json(),
                **self._suppression(),
            },
        )


@dataclass(frozen=True, slots=True)
class PatternOff(_Named):
    """A pattern stops here, its partial matches included."""

    KIND: ClassVar[RecordKind] = RecordKind.PATTERN_OFF


@dataclass(frozen=True, slots=True)
class PatternPause(_Named):
    """A pattern is paused and loses its partial matches; ``PatternOn`` with its version resumes it."""

    KIND: ClassVar[RecordKind] = RecordKind.PATTERN_PAUSE


@dataclass(frozen=True, slots=True)
class OperatorOn:
    """A version of an operator begins; another version stops.

    ``PatternOn`` does the same for patterns, in the form that the log has always had for them.

    Attributes:
        start: What happens to the state of another version: it is dropped, finished by that version, or (``keep``)
            continued in this one.
    """

    KIND: ClassVar[RecordKind] = RecordKind.OPERATOR_ON

    operator: Definition
    start: Start = "fresh"

    def to_json(self) -> dict[str, Any]:
        operator = self.operator
        return {
            "kind": operator.kind,
            "name": operator.name,
            "version": operator.version,
            "inputs": [{"stream": source.stream, "key": source.key} for source in operator.inputs],
            "body": operator.body,
            "start": self.start,
        }

    @classmethod
    def from_json(cls, members: Members) -> Self:
        inputs = members.get("inputs")
        if not isinstance(inputs, list) or not inputs or not all(isinstance(source, dict) for source in inputs):
            raise members.error("inputs", f"inputs are {inputs!r}; they must be a list of objects")
        operator = Definition(
            kind=members.text("kind"),
            name=members.text("name"),
            version=members.version(),
            inputs=tuple(Input(str(source.get("stream")), str(source.get("key", ""))) for source in inputs),
            body=members.json_object("body"),
        )
        return cls(operator, cast("Start", members.choice("start", get_args(Start))))


@dataclass(frozen=True, slots=True)
class OperatorOff:
    """An operator stops here; its state is dropped."""

    KIND: ClassVar[RecordKind] = RecordKind.OPERATOR_OFF

    operator: str
    name: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.operator, "name": self.name}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(members.text("kind"), members.text("name"))


@dataclass(frozen=True, slots=True)
class OperatorPause(OperatorOff):
    """An operator is paused, and its state is dropped; ``OperatorOn`` with its version resumes it."""

    KIND: ClassVar[RecordKind] = RecordKind.OPERATOR_PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsOn:
    """Traces that begin after this place follow this version of the stream's constraints; open traces keep theirs.

    Attributes:
        version: Counts from 1 within the stream and never repeats.
        document: The set in the canonical form of ``constraints.to_document``, the stream's end events included.
    """

    KIND: ClassVar[RecordKind] = RecordKind.CONSTRAINTS_ON

    name: str
    version: int
    document: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "document": self.document}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(name=members.text("name"), version=members.version(), document=members.json_object("document"))


@dataclass(frozen=True, slots=True)
class TableOn:
    """Later lookups read this version of a table; the record belongs to no stream, and concerns all."""

    KIND: ClassVar[RecordKind] = RecordKind.TABLE_ON

    table: TableVersion

    def to_json(self) -> dict[str, Any]:
        return self.table.to_json()

    @classmethod
    def from_json(cls, members: Members) -> Self:
        digest, _, _ = members.text("digest"), members.json_object("columns"), members.text("name")
        try:
            return cls(TableVersion.from_json(members.all))
        except (ForestallError, LookupError, TypeError, ValueError) as error:
            raise members.error("digest", f"the table {digest} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class TableOff(_Named):
    """A table ends here; a later ``TableOn`` begins it anew."""

    KIND: ClassVar[RecordKind] = RecordKind.TABLE_OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of a table changes here, as the next version of the table.

    Attributes:
        key: As ``streams.tables.key_texts`` makes it.
        row: The values of the columns in their order; None: the row is removed.
    """

    KIND: ClassVar[RecordKind] = RecordKind.TABLE_ROW

    name: str
    version: int
    key: str
    row: tuple[Any, ...] | None

    def to_json(self) -> dict[str, Any]:
        row = None if self.row is None else list(self.row)
        return {"name": self.name, "version": self.version, "key": self.key, "row": row}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        row = members.get("row")
        if row is not None and not isinstance(row, list):
            raise members.error("row", f"row is {row!r}; it must be a list of values or null")
        key, version = members.text("key"), members.version()
        return cls(name=members.text("name"), version=version, key=key, row=None if row is None else tuple(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The stream's event time has reached a time.

    Attributes:
        time_us: The newest time of the stream, from which its lateness is not subtracted yet.
        cause: Events of another shard, or the wall clock of a quiet stream.
    """

    KIND: ClassVar[RecordKind] = RecordKind.TICK

    time_us: int
    cause: TickCause

    def to_json(self) -> dict[str, Any]:
        return {"time": self.time_us, "cause": self.cause}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        time_us = members.time_us("time")
        if time_us is None:
            raise members.error("time", "time is None; it must be microseconds UTC")
        return cls(time_us=time_us, cause=cast("TickCause", members.choice("cause", get_args(TickCause))))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnd:
    """The trace of a key ends here.

    Attributes:
        time_us: When the trace ended, in event time; at most the newest time that the shard knows, which is also used
            for None.
    """

    KIND: ClassVar[RecordKind] = RecordKind.TRACE_END

    key: str
    time_us: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "time": self.time_us}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(key=members.text("key"), time_us=members.time_us("time"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Punctuation:
    """A promise about the events after this place; at least one of the first four members is set.

    Attributes:
        range: No later event with a time after ``time_us`` has a key in this range. The range finishes keys of
            operators and ends no traces, because only the hash of a trace's key is known.
        by: The key of the range: name or path of a further key, or the path of another attribute; empty: the
            correlation key.
        time_us: When the range is finished, in event time; None: at the newest time that the shard knows.
    """

    KIND: ClassVar[RecordKind] = RecordKind.PUNCTUATION

    before_us: int | None = None
    key: str | None = None
    keys: tuple[str, ...] = ()
    range: KeyRange | None = None
    by: str = ""
    time_us: int | None = None

    @property
    def ended(self) -> tuple[str, ...]:
        """The correlation keys whose traces end."""
        return self.keys if self.key is None else (self.key, *self.keys)

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before_us,
            "key": self.key,
            **({"keys": list(self.keys)} if self.keys else {}),
            **({} if self.range is None else {"range": self.range.to_json()}),
            **({"by": self.by} if self.by else {}),
            **({} if self.time_us is None else {"time": self.time_us}),
        }

    @classmethod
    def from_json(cls, members: Members) -> Self:
        key = None if members.get("key") is None else members.text("key")
        before_us, keys = members.time_us("before"), members.get("keys") if "keys" in members else []
        if not isinstance(keys, list) or not all(isinstance(one, str) and one for one in keys):
            raise members.error("keys", f"keys: a list of texts that are not empty, got {keys!r}")
        if key is None and before_us is None and not keys and "range" not in members:
            raise members.error("before", "it has neither a time before nor a key")
        return cls(
            before_us=before_us,
            key=key,
            keys=tuple(keys),
            range=_key_range(members),
            by=members.text("by") if "by" in members else "",
            time_us=members.time_us("time"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question about the state at this place of each shard; it changes nothing.

    Attributes:
        route: Name of the further key where they run; empty for the correlation key.
    """

    KIND: ClassVar[RecordKind] = RecordKind.ASK

    id: str
    operator: str
    route: str = ""
    question: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "kind": self.operator, "route": self.route, "question": self.question}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        return cls(
            id=members.text("id"),
            operator=members.text("kind"),
            route=members.text("route") if members.get("route") else "",
            question=members.json_object("question"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatenessChange:
    """A new bound of out-of-orderness for later events of a stream with ``lateness: auto``.

    If the stream has a fixed lateness at this place, the record changes nothing.

    Attributes:
        seen: The basis of the decision, for people.
    """

    KIND: ClassVar[RecordKind] = RecordKind.LATENESS

    number: int
    bound_us: int
    seen: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number, "bound": self.bound_us, "seen": self.seen}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        seen = members.json_object("seen") if "seen" in members else {}
        return cls(number=members.count("number"), bound_us=members.count("bound"), seen=seen)


def _key_range(members: Members) -> KeyRange | None:
    if "range" not in members:
        return None
    try:
        return KeyRange.from_json(members.get("range"))
    except ValueError as error:
        raise members.error("range", f"range: {error}") from error


def _budget(members: Members) -> WorkBudget:
    try:
        return WorkBudget.from_json(members.get("work") if "work" in members else {})
    except ValueError as error:
        raise members.error("work", f"work: {error}") from error


CONTROL_RECORDS: tuple[type[ControlRecord], ...] = (
    StreamOn,
    StreamOff,
    PatternOn,
    PatternOff,
    PatternPause,
    OperatorOn,
    OperatorOff,
    OperatorPause,
    ConstraintsOn,
    TableOn,
    TableOff,
    TableRow,
    Tick,
    TraceEnd,
    Punctuation,
    Ask,
    LatenessChange,
    KeysClosed,
)

_BY_KIND: Mapping[RecordKind, type[ControlRecord]] = {record.KIND: record for record in CONTROL_RECORDS}


def encode_control(record: ControlRecord) -> bytes:
    """The body of a record in the log; its kind is ``record.KIND``."""
    return orjson.dumps({"format": FORMAT_VERSION, **record.to_json()})


def decode_control(kind: RecordKind, body: bytes) -> ControlRecord:
    """Read the body of a control record; ``ControlRecordError`` if it is no JSON of a known format, or lacks a part."""
    if kind not in _BY_KIND:
        raise ControlRecordError("events are not a control record")
    return _BY_KIND[kind].from_json(Members(kind, _object(kind, body)))


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
