"""Control records: the entries of the log other than events. A record takes effect at its position in each shard.

Bodies are JSON objects with a ``format`` number. ``docs/log-format.md`` shows them. Each class of records reads and
writes its own body, so that writers of the log and the shards that apply it agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast, get_args

import orjson

from streams.declaration import StreamDeclaration
from streams.errors import ControlRecordError, ForestallError
from streams.key_ranges import GREATEST_NUMBER, LEAST_NUMBER, KeyRange
from streams.log.members import Body, Member, Members, choice_of
from streams.log.records import Definition, Input, RecordKind
from streams.tables import TableVersion
from streams.work_budget import USUAL_BUDGET, WorkBudget

FORMAT_VERSION = 1

Start: TypeAlias = Literal["fresh", "migrate", "keep"]
TickCause: TypeAlias = Literal["events", "clock"]


def _declaration(members: Members, name: str) -> StreamDeclaration:
    return StreamDeclaration.from_json(members.get(name))


def _switch(members: Members, name: str) -> bool:
    return members.choice(name, ("on", "off")) == "on"


def _route(members: Members, name: str) -> str:
    return members.text(name) if members.get(name) else ""


def _budget(members: Members, name: str) -> WorkBudget:
    try:
        return WorkBudget.from_json(members.get(name))
    except ValueError as error:
        raise members.error(name, f"{name}: {error}") from error


def _key_range(members: Members, name: str) -> KeyRange:
    try:
        return KeyRange.from_json(members.get(name))
    except ValueError as error:
        raise members.error(name, f"{name}: {error}") from error


def _keys(members: Members, name: str) -> tuple[str, ...]:
    keys = members.get(name)
    if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
        raise members.error(name, f"{name}: a list of texts that are not empty, got {keys!r}")
    return tuple(keys)


def _row(members: Members, name: str) -> tuple[Any, ...] | None:
    row = members.get(name)
    if row is not None and not isinstance(row, list):
        raise members.error(name, f"{name} is {row!r}; it must be a list of values or null")
    return None if row is None else tuple(row)


def _closing_key(members: Members, name: str) -> int | None:
    key = members.get(name)
    is_whole = isinstance(key, int) and not isinstance(key, bool) and LEAST_NUMBER <= key <= GREATEST_NUMBER
    if key is not None and not is_whole:
        raise members.error(name, f"{name} is {key!r}; it must be a whole number of 64 bits, or null")
    return cast("int | None", key)


Name: TypeAlias = Annotated[str, Member(Members.text)]
Version: TypeAlias = Annotated[int, Member(Members.version)]
Count: TypeAlias = Annotated[int, Member(Members.count)]
Object: TypeAlias = Annotated[Mapping[str, Any], Member(Members.json_object)]


@dataclass(frozen=True, slots=True)
class ControlRecord(Body):
    """Base class of control records: entries of the log that take effect at their position.

    ``CONTROL_RECORDS`` lists the class of each kind of record.
    """

    KIND: ClassVar[RecordKind]


@dataclass(frozen=True, slots=True)
class _NamedRecord(ControlRecord):
    name: Name


@dataclass(frozen=True, slots=True)
class StreamOn(ControlRecord):
    """A stream is declared, or its declaration changes."""

    KIND: ClassVar[RecordKind] = RecordKind.STREAM_ON

    declaration: Annotated[StreamDeclaration, Member(_declaration, StreamDeclaration.to_json)]


@dataclass(frozen=True, slots=True)
class StreamOff(_NamedRecord):
    """A stream is removed with its whole state. A later ``StreamOn`` declares it again, without state."""

    KIND: ClassVar[RecordKind] = RecordKind.STREAM_OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternOn(ControlRecord):
    """A version of a pattern starts. Another version stops, and its partial matches are dropped.

    If ``start`` is ``migrate``, the other version continues until its current partial matches are finished.

    Attributes:
        version: Counts from 1 for each name and never repeats.
        is_guarded: Whether constraints of the stream terminate partial matches of the pattern early.
        route: Name of the further key by whose traces the pattern is matched. It is empty for the correlation key.
    """

    KIND: ClassVar[RecordKind] = RecordKind.PATTERN_ON

    name: Name
    version: Version
    text: Name
    is_guarded: Annotated[bool, Member(_switch, {True: "on", False: "off"}.get, "constraints", is_sparse=True)] = True
    start: Annotated[Start, Member(choice_of("fresh", "migrate"), is_sparse=True)] = "fresh"
    route: Annotated[str, Member(Members.text, is_sparse=True)] = ""
    budget: Annotated[WorkBudget, Member(_budget, WorkBudget.to_json, "work", is_sparse=True)] = USUAL_BUDGET
    suppression: Annotated[Mapping[str, Any] | None, Member(Members.json_object, is_sparse=True)] = None

    def definition(self, stream: str) -> Definition:
        """Return the pattern as an operator of a stream."""
        return Definition(
            kind="pattern",
            name=self.name,
            version=self.version,
            inputs=(Input(stream, self.route),),
            body={
                "text": self.text,
                "is_guarded": self.is_guarded,
                "budget": self.budget.to_json(),
                **({} if self.suppression is None else {"suppression": self.suppression}),
            },
        )


@dataclass(frozen=True, slots=True)
class PatternOff(_NamedRecord):
    """A pattern stops, and its partial matches are dropped."""

    KIND: ClassVar[RecordKind] = RecordKind.PATTERN_OFF


@dataclass(frozen=True, slots=True)
class PatternPause(_NamedRecord):
    """A pattern is paused, and its partial matches are dropped. ``PatternOn`` with its version resumes it."""

    KIND: ClassVar[RecordKind] = RecordKind.PATTERN_PAUSE


@dataclass(frozen=True, slots=True)
class OperatorOn(ControlRecord):
    """A version of an operator starts, and another version stops. Patterns have ``PatternOn`` instead.

    Attributes:
        start: What happens to the state of the other version. With ``fresh`` it is dropped, with ``migrate`` the other
            version finishes it, and with ``keep`` this version continues with it.
    """

    KIND: ClassVar[RecordKind] = RecordKind.OPERATOR_ON

    operator: Definition
    start: Start = "fresh"

    def definition(self, stream: str) -> Definition:
        """Return the operator, for any stream, as ``PatternOn`` does."""
        return self.operator

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
            version=members.version("version"),
            inputs=tuple(Input(str(source.get("stream")), str(source.get("key", ""))) for source in inputs),
            body=members.json_object("body"),
        )
        return cls(operator, cast("Start", members.choice("start", get_args(Start))))


@dataclass(frozen=True, slots=True)
class OperatorOff(ControlRecord):
    """An operator stops, and its state is dropped."""

    KIND: ClassVar[RecordKind] = RecordKind.OPERATOR_OFF

    operator: Annotated[str, Member(Members.text, name="kind")]
    name: Name


@dataclass(frozen=True, slots=True)
class OperatorPause(OperatorOff):
    """An operator is paused, and its state is dropped. ``OperatorOn`` with its version resumes it."""

    KIND: ClassVar[RecordKind] = RecordKind.OPERATOR_PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsOn(ControlRecord):
    """A new version of a stream's constraints. New traces follow this version, and open traces keep theirs.

    Attributes:
        version: Counts from 1 within the stream and never repeats.
        document: The constraints and end events of the stream, in the canonical form of ``constraints.to_document``.
    """

    KIND: ClassVar[RecordKind] = RecordKind.CONSTRAINTS_ON

    name: Name
    version: Version
    document: Object


@dataclass(frozen=True, slots=True)
class TableOn(ControlRecord):
    """A new version of a table for all later lookups. The record belongs to no stream and concerns all streams."""

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
class TableOff(_NamedRecord):
    """A table is removed. A later ``TableOn`` creates a new table."""

    KIND: ClassVar[RecordKind] = RecordKind.TABLE_OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow(ControlRecord):
    """One row of a table changes, as the next version of the table.

    Attributes:
        key: The text of the key, as ``streams.tables.mapped.key_texts`` returns it.
        row: The values of the columns in their order. None removes the row.
    """

    KIND: ClassVar[RecordKind] = RecordKind.TABLE_ROW

    name: Name
    version: Version
    key: Name
    row: Annotated[tuple[Any, ...] | None, Member(_row)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(ControlRecord):
    """The stream's event time has reached a time.

    Attributes:
        time_us: The newest time of the stream, before its lateness is subtracted. In a closing tick of a derived
            stream, ``CLOSED_US`` or later: in every shard, some time after the closing tick before, no operator fed the
            stream through the log any more, and all events of such operators precede this record.
        cause: ``events`` if events of another shard caused the tick, ``clock`` if the wall clock did in a quiet stream.
    """

    KIND: ClassVar[RecordKind] = RecordKind.TICK

    time_us: Annotated[int, Member(Members.reached_us, name="time")]
    cause: Annotated[TickCause, Member(choice_of(*get_args(TickCause)))]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnd(ControlRecord):
    """The trace of a key ends.

    Attributes:
        time_us: Event time of the end, at most the newest time in the shard. None means the newest time.
    """

    KIND: ClassVar[RecordKind] = RecordKind.TRACE_END

    key: Name
    time_us: Annotated[int | None, Member(Members.time_us, name="time")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Punctuation(ControlRecord):
    """A promise about later events. One of ``before_us``, ``key``, ``keys`` and ``range`` is set.

    Attributes:
        before_us: No later event is older than this time.
        key: No later event has this correlation key, so its trace ends.
        keys: No later event has one of these correlation keys, so their traces end.
        range: No later event with a time after ``time_us`` has a key in this range. Inputs of joins finish these keys.
            No trace ends, because only the hash of a trace's key is known.
        by: The key that the range is about: name or path of a further key, or path of another attribute. It is empty
            for the correlation key.
        time_us: The event time at which the range is finished. None means the newest time in the shard.
    """

    KIND: ClassVar[RecordKind] = RecordKind.PUNCTUATION

    before_us: Annotated[int | None, Member(Members.time_us, name="before")] = None
    key: Annotated[str | None, Member(Members.text_or_none)] = None
    keys: Annotated[tuple[str, ...], Member(_keys, is_sparse=True)] = ()
    range: Annotated[KeyRange | None, Member(_key_range, KeyRange.to_json, is_sparse=True)] = None
    by: Annotated[str, Member(Members.text, is_sparse=True)] = ""
    time_us: Annotated[int | None, Member(Members.time_us, name="time", is_sparse=True)] = None

    @property
    def ended(self) -> tuple[str, ...]:
        """The correlation keys whose traces the punctuation ends."""
        return self.keys if self.key is None else (self.key, *self.keys)

    @classmethod
    def from_json(cls, members: Members) -> Self:
        punctuation = super(Punctuation, cls).from_json(members)
        if punctuation.before_us is None and punctuation.range is None and not punctuation.ended:
            raise members.error("before", "it has neither a time before nor a key")
        return punctuation


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(ControlRecord):
    """A question about the state of the operators of a stream. Each shard answers it for this position.

    The record changes nothing.

    Attributes:
        id: Id of the question. It begins with the asker and a dot.
        operator: Kind of the operators that are asked.
        route: Name of the further key by which these operators read the stream. It is empty for the correlation key.
        question: The question in the form of the kind.
    """

    KIND: ClassVar[RecordKind] = RecordKind.ASK

    id: Name
    operator: Annotated[str, Member(Members.text, name="kind")]
    route: Annotated[str, Member(_route)] = ""
    question: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class LatenessChange(ControlRecord):
    """A new bound of out-of-orderness for later events of a stream with ``lateness: auto``.

    If the stream has a fixed lateness at this position, the record has no effect.

    Attributes:
        number: Counts the changes of the bound.
        seen: The measurements behind the decision, for people.
    """

    KIND: ClassVar[RecordKind] = RecordKind.LATENESS

    number: Count
    bound_us: Annotated[int, Member(Members.count, name="bound")]
    seen: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedKeys(Body):
    """The keys that an input of a join with ``wait: auto`` has finished. No later events with these keys are expected.

    Attributes:
        to: The last finished key. No event with a key up to this one and a time after ``time_us`` is expected. None
            means that the input's keys have started again, so finished keys may occur again.
        reading: A hash of how the observed version reads the input. Other versions ignore the decision. It is empty in
            decisions of an earlier release, which apply to every version.
        seen: The measurements behind the decision, for people.
    """

    input: Name
    to: Annotated[int | None, Member(_closing_key)]
    time_us: Annotated[int, Member(Members.known_time_us, name="time")]
    seen: Object = field(default_factory=dict)
    reading: Annotated[str, Member(Members.text, is_sparse=True)] = ""


def _listed(closed: Sequence[ClosedKeys]) -> list[dict[str, Any]]:
    return [keys.to_json() for keys in closed]


def _closed(members: Members, name: str) -> tuple[ClosedKeys, ...]:
    entries = members.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise members.error(name, f"{name} is {entries!r}; it must be a list of objects")
    return tuple(ClosedKeys.from_json(Members(members.kind, entry)) for entry in entries)


@dataclass(frozen=True, slots=True)
class KeysClosed(ControlRecord):
    """Inputs of a join with ``wait: auto`` finish keys, as a decider concluded from the reports of all shards.

    The record belongs to the stream whose place hosts the join.

    Attributes:
        closed: The keys that each of the inputs has finished.
        refused: If the join must stop, because it would exceed its memory limit, the reason in words. Otherwise None.
        version: The observed version of the join, which is the only version that stops. None in records of earlier
            releases, which concern any version.
    """

    KIND: ClassVar[RecordKind] = RecordKind.KEYS_CLOSED

    closed: Annotated[tuple[ClosedKeys, ...], Member(_closed, _listed)]
    refused: Annotated[str | None, Member(Members.text, is_sparse=True)] = None
    version: Annotated[int | None, Member(Members.version, is_sparse=True)] = None


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
    """Return the body of a control record in the log, as JSON. The kind of record is not a part of it."""
    return orjson.dumps({"format": FORMAT_VERSION, **record.to_json()})


def decode_control(kind: RecordKind, body: bytes) -> ControlRecord:
    """Read the body of a control record.

    Raises ``ControlRecordError`` if the body is not JSON of a known format, or lacks a part.
    """
    if kind not in _BY_KIND:
        raise ControlRecordError("events are not a control record")
    return _BY_KIND[kind].from_json(Members(kind, _object(kind, body)))


def _object(kind: RecordKind, body: bytes) -> dict[str, Any]:
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ControlRecordError(f"{kind.value} record: {len(body)} bytes are not JSON: {error}") from error
    if not isinstance(members, dict) or members.get("format") != FORMAT_VERSION:
        version = members.get("format") if isinstance(members, dict) else None
        raise ControlRecordError(
            f"{kind.value} record: format {version!r} is unknown; this release reads {FORMAT_VERSION}"
        )
    return members
