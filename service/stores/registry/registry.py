"""The registry, which stores streams, patterns, other operators and constraint sets, with their versions.

Every change is one atomic script that writes the registry and appends the control record to every shard of the event
log. Therefore registry and log are always consistent (``service.stores.record_books``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

from service.errors import NotFound, StreamExists, UnknownConstraints, UnknownStream
from service.stores.conditions import ANY, Condition
from service.stores.connection import Client, register
from service.stores.heartbeat import HEARTBEAT_KEY
from service.stores.log.event_log import EventLog
from service.stores.log.stream_times import TIME_PARTS, StreamTimes
from service.stores.record_books import Change, Checks, LogChange, RecordBook, Records, counted, version_of
from service.stores.records import decode, encode
from service.stores.registry.event_types import EventTypeStore, SchemaUse
from service.stores.registry.operators import Operators, PatternOperators
from service.stores.registry.registered import (
    PATTERN,
    ConstraintsDraft,
    OperatorDraft,
    OperatorPart,
    RegisteredConstraints,
    RegisteredOperator,
    StreamRecord,
    read_stream,
)
from service.stores.registry.removal import CONSTRAINT_VERSIONS_KEY, CONSTRAINTS_KEY, STREAM_VERSIONS_KEY, StreamRemoval
from service.stores.server_facts import server_time_us
from service.stores.severities import USUAL_SEVERITY, Severity
from streams import STREAMS_KEY, USUAL_BUDGET, ConstraintsOn, StreamDeclaration, StreamOn, WorkBudget, shown

_MOST_READ = 256  # operators whose parsed records are cached

StreamChange: TypeAlias = Callable[
    [StreamDeclaration, RegisteredConstraints | None], tuple[StreamDeclaration, ConstraintsDraft | None]
]
"""Function that computes a stream's new declaration and constraint set from the current ones.

It returns None in place of the constraint set to leave the set unchanged.
"""


class Registry:
    """The registry, with the event log to which it appends control records."""

    def __init__(self, client: Client, log: EventLog, budget: WorkBudget = USUAL_BUDGET) -> None:
        self._client = client
        self._read_operator = register(client, "registry/read_asked", heartbeat=HEARTBEAT_KEY)
        self._parsed_records = lru_cache(maxsize=_MOST_READ)(self._read_records)
        self._book = RecordBook(client, log.layout.append)
        self.removal = StreamRemoval(client, log)
        self.event_types = EventTypeStore(client)
        self.constraints = ConstraintSets(self._book)
        self.pattern_operators = PatternOperators(self._book, budget)

    # Streams

    def declare_stream(
        self, declaration: StreamDeclaration, condition: Condition = ANY, *, is_checked: bool | None = None
    ) -> bool:
        """Declare a stream, and return whether it is new.

        If ``is_checked``, the stream's events are checked against schemas. If the stream exists with another
        declaration or another ``is_checked``, raise ``StreamExists``. If ``is_checked`` is None, a new stream has no
        checks, and an existing stream may have any setting.
        """

        def change(current: bytes | None) -> Change | None:
            stored = None if current is None else read_stream(current, declaration.name)
            condition.check_record(stored)
            if stored is None:
                checks, since_ms = self.removal.check(), self._next_since_ms(declaration.name)
                schemas = {"schemas": asdict(SchemaUse(version=1, is_checked=True))} if is_checked else {}
                record = encode(declaration=declaration.to_json(), since_ms=since_ms, **schemas)
                declared = LogChange(stream=declaration.name, control=StreamOn(declaration), user=declaration.name)
                return Change(record=record, version=1, log=(declared,), checks=checks)
            if stored.declaration != declaration or is_checked not in (None, stored.schemas.is_checked):
                differing = "; ".join(_differences(stored, declaration, is_checked))
                raise StreamExists(
                    f"the stream {declaration.name!r} exists with another declaration ({differing}); use another name, "
                    f"send the existing declaration, or change it (PATCH /v1/streams/{declaration.name})",
                    stream=declaration.name,
                )
            return None

        title = f"the stream {declaration.name!r}"
        return self._book.apply(STREAMS_KEY, declaration.name, change, title, STREAM_VERSIONS_KEY)[1]

    def _next_since_ms(self, stream: str) -> int:
        """Return the time for a new declaration, which is later than all entries of former streams of this name."""
        now_ms = removed_ms = server_time_us(self._client) // 1_000
        if self.removal.is_removed(stream):  # the stream was removed at removed_ms at the latest
            while now_ms == removed_ms:
                now_ms = server_time_us(self._client) // 1_000
        return now_ms

    def change_stream(
        self,
        name: str,
        change: StreamChange,
        now_us: int,
        condition: Condition = ANY,
        *,
        is_checked: bool | None = None,
    ) -> StreamRecord:
        """Change a stream's declaration for later entries of the log. Return the stream after the call.

        ``change`` computes the new declaration and may raise. If another writer intervenes, it is called again.
        ``is_checked`` turns schema checks on or off. With None, the setting does not change.
        """
        title = f"the stream {name!r}"

        def changed(current: bytes | None) -> Change | None:
            if current is None:
                raise UnknownStream.named(name)
            before = read_stream(current, name)
            condition.check_record(before)
            checks = self._book.use_check(STREAMS_KEY, name)
            rules = self._book.get(CONSTRAINTS_KEY, name) or b""
            constraints = self.constraints.read(rules, name) if rules else None
            declaration, draft = change(before.declaration, constraints)
            use = before.schemas
            if is_checked not in (None, use.is_checked):
                use = SchemaUse(version=use.version + 1, is_checked=not use.is_checked)
            if (declaration, use) == (before.declaration, before.schemas):
                return None
            members = {"declaration": declaration.to_json(), "schemas": asdict(use)}
            record = encode(**{**decode(current, title), **members})
            log = () if declaration == before.declaration else (LogChange(stream=name, control=StreamOn(declaration)),)
            stream_change = Change(record=record, log=log, checks=(*checks, (CONSTRAINTS_KEY, name, rules)))
            if draft is None or (constraints_change := _next_constraints(name, constraints, draft, now_us)) is None:
                return stream_change
            places = (CONSTRAINTS_KEY, name), (CONSTRAINT_VERSIONS_KEY, version_of(name, constraints_change.version))
            commands = tuple(("HSET", *place, constraints_change.record) for place in places)
            return replace(stream_change, log=(*log, *constraints_change.log), commands=commands)

        return read_stream(self._book.apply(STREAMS_KEY, name, changed, title)[0], name)

    def stream(self, name: str) -> StreamDeclaration:
        """Return the declaration of a stream. If it is not declared, raise ``UnknownStream``."""
        return self.stream_with_schemas(name)[0]

    def stream_with_schemas(self, name: str) -> StreamRecord:
        """Return the declaration of a stream and its use of schemas. If it is not declared, raise ``UnknownStream``."""
        if (record := self.find_stream(name)) is None:
            raise UnknownStream.named(name)
        return record

    def find_stream(self, name: str) -> StreamRecord | None:
        """Return the declaration of a stream and its use of schemas, or None if it is not declared."""
        body = self._book.get(STREAMS_KEY, name)
        return None if body is None else read_stream(body, name)

    def since_ms(self, name: str) -> int:
        """Return the time of a stream's declaration by Redis' clock, in milliseconds UTC.

        Entries of the log before this time belong to a former stream of the same name. The result is 0 if an older
        release declared the stream.
        """
        return self.stream_with_schemas(name).since_ms

    def streams(self) -> list[StreamDeclaration]:
        """Return the declarations of all streams, sorted by name."""
        return [record.declaration for record in self.streams_with_schemas()]

    def streams_with_schemas(self) -> list[StreamRecord]:
        """Return the declaration and the use of schemas of all streams, sorted by name."""
        return [read_stream(body, name) for name, body in self._book.all(STREAMS_KEY)]

    def check(self, key: str, name: str) -> Checks:
        """Return a check that fails after a change or removal of a record, or if a missing record is stored."""
        return self._book.check(key, name)

    def feeds_check(self) -> Checks:
        """Return a check that fails after another operator that feeds or reads derived streams was registered."""
        return self._book.use_check(STREAMS_KEY, "")

    # Patterns

    def put_pattern(self, stream: str, draft: OperatorDraft, now_us: int) -> tuple[RegisteredOperator, bool]:
        """Register a pattern (``Operators.put``). Return the pattern after the call, and whether it changed."""
        return self.pattern_operators.put(stream, draft, now_us)

    def suspend(self, suspension: Mapping[str, Any]) -> bool:
        """Suspend an operator in every shard (``Operators.suspend``). Return whether this report caused the suspension.

        ``suspension`` is a shard's report, which has the operator's name in ``pattern`` and its kind in ``operator``.
        """
        return self.operators(suspension.get("operator", PATTERN)).suspend(suspension["pattern"], suspension)

    def pattern(self, name: str) -> RegisteredOperator:
        return self.pattern_operators.get(name)

    def patterns(self, stream: str | None = None) -> list[RegisteredOperator]:
        """Return the patterns of ``stream``, or of all streams, sorted by name. Deleted patterns are left out."""
        return [pattern for pattern in self.pattern_operators.all() if stream in (None, pattern.stream)]

    def producers(self, into: str | None = None) -> list[RegisteredOperator]:
        """Return the patterns that feed ``into`` (None: any stream) and have no inner operators, even if paused."""
        patterns = [pattern for pattern in self.patterns() if pattern.is_running and pattern.into and not pattern.parts]
        return [pattern for pattern in patterns if into in (None, pattern.into)]

    def feeders(self) -> list[OperatorPart]:
        """Return the operators and inner operators that feed derived streams, even if paused or suspended."""
        return [feeder for operator in self.every_operator() if operator.is_running for feeder in operator.feeders]

    def timing_feeders(self) -> list[OperatorPart]:
        """Return the feeders whose source streams determine the event time of derived streams.

        All of ``feeders`` are included. If no active operator feeds a derived stream, the stream's retired, deleted and
        replaced feeders are included too, because the events that they derived may be waiting for time to pass.
        """
        every_record = (*self.pattern_operators.ever(), *self.operators("").ever())
        records = [record for record in every_record if record.stage != "draft"]
        active = [record for record in records if record.is_running and record.state == "active"]
        fed = {feeder.into for record in active for feeder in record.feeders}
        current = [
            feeder for record in records for feeder in record.feeders if record.is_running or feeder.into not in fed
        ]
        former = (feeder for record in every_record for feeder in record.former_feeders)
        return [*current, *(feeder for feeder in former if feeder.into not in fed)]

    def severities(self, kind: str, names: Collection[str]) -> dict[str, Severity]:
        """Return the severities of the operators ``names`` of one kind, by name.

        ``names`` must not be empty. Deleted operators are included, because some of their alerts may be unwritten.
        """
        operators = self.operators(kind)
        fields = [operators.prefix + name for name in names]
        records = cast("list[bytes | None]", self._client.hmget(operators.key, fields))
        return {
            name: decode(body, f"the {kind} {name!r}").get("severity", USUAL_SEVERITY)
            for name, body in zip(names, records, strict=True)
            if body is not None
        }

    # Operators of every kind

    def every_operator(self) -> list[RegisteredOperator]:
        """Return all operators that are not deleted, in any state.

        Patterns are first, sorted by name, and then the other operators, sorted by kind and name.
        """
        return [*self.patterns(), *self.operators("").all()]

    def operators(self, kind: str) -> Operators:
        """Return the store of the operators of a kind.

        If ``kind`` is empty, return a store of all kinds except patterns, which must be used for reading only.
        """
        return self.pattern_operators if kind == PATTERN else Operators(self._book, kind)

    def operator_with_times(
        self, kind: str, name: str
    ) -> tuple[RegisteredOperator, StreamDeclaration, StreamTimes, int | None]:
        """Return an operator, its stream, the stream's times, and the time of the pipeline's last heartbeat.

        One script reads all four, so that they are consistent. The heartbeat is in microseconds UTC, or None before the
        first heartbeat. If the operator is unknown or deleted, raise the error of ``Operators.unknown``.
        """
        operators = self.operators(kind)
        reply = self._read_operator(operators=operators.key, field=operators.prefix + name, parts=TIME_PARTS)
        body, stream, times, beat = reply or (None, None, (), None)
        record, declaration = self._parsed_records(kind, name, body, stream)
        return record, declaration, StreamTimes.read(times), None if beat is None else int(beat)

    def _read_records(
        self, kind: str, name: str, body: bytes | None, stream: bytes | None
    ) -> tuple[RegisteredOperator, StreamDeclaration]:
        operators = self.operators(kind)
        record = operators.require(None if body is None else operators.read(body, name), name)
        if stream is None:
            raise UnknownStream.named(record.stream)
        return record, read_stream(stream, record.stream)[0]

    def named(self, name: str) -> list[RegisteredOperator]:
        """Return all operators with a name, one at most per kind. If there are none, raise ``UnknownPatternName``."""
        operators = [operator for operator in self.operators("").all() if operator.name == name]
        pattern = self.pattern_operators.find(name)
        if pattern is None and not operators:
            raise self.pattern_operators.unknown(name)
        return operators if pattern is None else [pattern, *operators]


class ConstraintSets(Records[RegisteredConstraints]):
    """The constraint sets, by stream."""

    key = CONSTRAINTS_KEY
    versions_key = CONSTRAINT_VERSIONS_KEY
    one = "the constraint set of"
    form = RegisteredConstraints

    def unknown(self, name: str, reason: str = "", **details: Any) -> NotFound:
        return UnknownConstraints(
            reason or f"the stream {name!r} has no constraint set; upload one (POST /v1/constraints)", stream=name
        )

    def put(
        self,
        stream: str,
        change: Callable[[RegisteredConstraints | None], ConstraintsDraft],
        now_us: int,
        condition: Condition = ANY,
        required: Callable[[], Checks] = tuple,
    ) -> tuple[RegisteredConstraints, bool]:
        """Replace a stream's constraint set by the result of ``change``. An equal set changes nothing.

        Return the set after the call, and whether it changed. ``change`` and ``required`` may raise. If another writer
        changes the set, the stream or a record of ``required``, both are called again.
        """

        def changed(registered: RegisteredConstraints | None) -> Change | None:
            condition.check_record(registered)
            checks, declared = required(), self._book.check(STREAMS_KEY, stream)
            next_change = _next_constraints(stream, registered, change(registered), now_us)
            if next_change is None:
                return None
            return replace(next_change, checks=(*checks, *declared), commands=counted(checks))

        return self.apply(stream, changed)


def _next_constraints(
    stream: str, registered: RegisteredConstraints | None, draft: ConstraintsDraft, now_us: int
) -> Change | None:
    if registered is not None and registered.equals(draft):
        return None
    version = 1 if registered is None else registered.version + 1
    record = encode(stream=stream, version=version, uploaded_us=now_us, **asdict(draft))
    control = ConstraintsOn(name=stream, version=version, document=draft.document)
    return Change(record=record, version=version, log=(LogChange(stream=stream, control=control),))


def _differences(stored: StreamRecord, declaration: StreamDeclaration, is_checked: bool | None) -> Iterator[str]:
    before, after = stored.declaration.to_json(), declaration.to_json()
    for member in dict.fromkeys((*before, *after)):
        values = [form.get(member) for form in (before, after)]
        if values[0] != values[1]:
            stored_text, given_text = ("not set" if value is None else shown(value) for value in values)
            yield f"{member}: {stored_text}, here {given_text}"
    if is_checked is not None and is_checked != stored.schemas.is_checked:
        yield f"schemas: {'check' if stored.schemas.is_checked else 'off'}"
