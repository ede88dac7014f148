"""Drafts and records of registered resources. Members with a default may be missing in records of older releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from service.errors import RecordFormatError
from service.stores.conditions import ANY, Condition
from service.stores.record_books import Checks
from service.stores.records import decode
from service.stores.registry.event_types import SchemaUse, read_use
from service.stores.severities import USUAL_SEVERITY, Severity
from shards import SUPPRESSION, OperatorRefused, PatternKind
from streams import DeclarationError, Definition, Input, PatternOn, Start, StreamDeclaration

FollowMode: TypeAlias = Literal["auto", "exact", "tables"]
State: TypeAlias = Literal["draft", "active", "paused", "suspended", "retired"]
Stage: TypeAlias = Literal["draft", "running", "retired"]
FirstState: TypeAlias = Literal["draft", "active", "paused"]

PATTERN = "pattern"
_NOT_OF_PATTERNS = frozenset(("kind", "inputs", "body", "parts", "held_from", "held_since_us"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """An inner operator on one stream. It is registered together with its operator and never listed.

    Attributes:
        key: Name of the further key by which the part reads the stream, or empty for the correlation key.
        into: The derived stream that the part feeds, or empty.
    """

    kind: str
    name: str
    stream: str
    key: str
    into: str
    body: Mapping[str, Any]

    def definition(self, version: int) -> Definition:
        inputs = (Input(self.stream, self.key),)
        return Definition(kind=self.kind, name=self.name, version=version, inputs=inputs, body=self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredOperator:
    """The record of a registered operator of any kind.

    Attributes:
        is_active: False if the operator is deleted. If it is registered again, its version numbers continue.
        inputs: All inputs, as pairs of a stream and the name of a further key (empty for the correlation key).
        body: The operator's definition. For a pattern: ``text``, ``is_guarded`` and optionally ``suppression``.
        route: Name of the further key of the first input, or empty for the correlation key.
        stage: ``draft`` before the operator's first run, then ``running``, finally ``retired``.
        suspension: The pipeline's report with the reason, if the operator is suspended.
        into: The derived stream that the operator feeds, or empty.
        held_from: Number of the version that started the current matching state, or 0 if this version started it.
        held_since_us: Start of the current matching state, microseconds UTC, or None if it started at registration.
        former_feeds: Feeds of earlier versions that this version lacks. A feed is a triple of source stream, further
            key and derived stream.
    """

    kind: str
    name: str
    stream: str
    version: int
    is_active: bool
    registered_us: int
    inputs: tuple[tuple[str, str], ...]
    body: Mapping[str, Any]
    route: str = ""
    is_paused: bool = False
    severity: Severity = USUAL_SEVERITY
    stage: Stage = "running"
    suspension: Mapping[str, Any] | None = None
    into: str = ""
    parts: tuple[OperatorPart, ...] = ()
    held_from: int = 0
    held_since_us: int | None = None
    former_feeds: tuple[tuple[str, str, str], ...] = ()

    @property
    def state(self) -> State:
        """The operator's state (``service.stores.registry.life_cycle``)."""
        if self.stage != "running":
            return self.stage
        if self.suspension is not None:
            return "suspended"
        return "paused" if self.is_paused else "active"

    @property
    def is_running(self) -> bool:
        """Whether the operator receives events, or will receive events when it is resumed."""
        return self.is_active and self.stage == "running"

    @property
    def text(self) -> str:
        return str(self.body["text"])

    @property
    def is_guarded(self) -> bool:
        """Whether the stream's constraints prune the partial matches of a pattern."""
        return bool(self.body["is_guarded"])

    def tagged(self) -> dict[str, Any]:
        """Return the members of the stored record.

        The record of a pattern has no kind, inputs and parts. The members of its body are at the top level.
        """
        fields: dict[str, Any] = asdict(self)
        if not self.former_feeds:
            del fields["former_feeds"]  # keeps records and entity tags equal to those of earlier releases
        if self.kind != PATTERN:
            return fields
        shared = {name: value for name, value in fields.items() if name not in _NOT_OF_PATTERNS}
        return {**shared, **self.body}

    @property
    def is_continued(self) -> bool:
        """Whether this version continues the matching state of an earlier version."""
        return 0 < self.held_from < self.version

    @property
    def since_us(self) -> int:
        """Start of the operator's current matching state, microseconds UTC."""
        return self.registered_us if self.held_since_us is None else self.held_since_us

    @property
    def feeders(self) -> tuple[OperatorPart, ...]:
        """The feeders of derived streams: the operator itself if it feeds a stream, and then its inner operators."""
        whole = OperatorPart(
            kind=self.kind, name=self.name, stream=self.stream, key=self.route, into=self.into, body=self.body
        )
        return tuple(part for part in (whole, *self.parts) if part.into)

    @property
    def former_feeders(self) -> tuple[OperatorPart, ...]:
        """The feeds in ``former_feeds`` as feeders with empty bodies."""
        return tuple(
            OperatorPart(kind=self.kind, name=self.name, stream=stream, key=key, into=into, body={})
            for stream, key, into in self.former_feeds
        )

    def after(self, stored: RegisteredOperator | None) -> RegisteredOperator:
        """Return this version with ``former_feeds``, the feeds of earlier versions that this version lacks.

        ``stored`` is the preceding version. If it is a draft, it never ran, so its feeds are left out.
        """
        if stored is None:
            return self
        last = () if stored.stage == "draft" else stored.feeders
        feeds = (*stored.former_feeds, *((feeder.stream, feeder.key, feeder.into) for feeder in last))
        current = {(feeder.stream, feeder.key, feeder.into) for feeder in self.feeders}
        return replace(self, former_feeds=tuple(feed for feed in dict.fromkeys(feeds) if feed not in current))

    @property
    def listens_to(self) -> frozenset[str]:
        return frozenset([self.stream, *(source for source, _ in self.inputs), *(part.stream for part in self.parts)])

    @property
    def definition(self) -> Definition:
        inputs = tuple(Input(stream, key) for stream, key in self.inputs)
        return Definition(kind=self.kind, name=self.name, version=self.version, inputs=inputs, body=self.body)

    @property
    def fresh_start(self) -> PatternOn:
        """The control record that starts a pattern without an earlier state, with the usual work budget."""
        return PatternOn(
            name=self.name,
            version=self.version,
            text=self.text,
            is_guarded=self.is_guarded,
            route=self.route,
            suppression=self.body.get(SUPPRESSION),
        )


RegisteredPattern: TypeAlias = RegisteredOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDraft:
    """An operator to be registered. The names ``.`` and ``..`` raise ``OperatorRefused``.

    Attributes:
        inputs: Streams and keys of the inputs. If empty, the only input is the stream on which the operator is
            registered, read by the key ``route``.
        route: Name of the further key of the first input, or empty for the correlation key.
        severity: Severity of the alerts. None means ``medium`` for a new operator, and no change for a registered one.
        keeps: Function that receives the body of a former version, and returns whether its state is continued.
        start: How the operator starts if ``keeps`` returns False for the former version.
        state: State after the registration. A ``draft`` is only stored. A ``paused`` operator receives no events until
            it is resumed.
        creates: Whether the registration fails if a different operator has the same name.
        required: Function that returns the records that must be unchanged when the operator is stored
            (``Change.checks``). It is called before each attempt to store the operator, and may raise.
    """

    kind: str
    name: str
    body: Mapping[str, Any]
    inputs: tuple[Input, ...] = ()
    route: str = ""
    severity: Severity | None = None
    keeps: Callable[[Mapping[str, Any]], bool] = lambda _: False
    start: Start = "fresh"
    state: FirstState = "active"
    creates: bool = False
    condition: Condition = ANY
    into: str = ""
    parts: tuple[OperatorPart, ...] = ()
    required: Callable[[], Checks] = tuple

    def __post_init__(self) -> None:
        if self.name in (".", ".."):  # clients remove such segments from paths
            raise OperatorRefused(
                f"the {self.kind} cannot have the name {self.name!r}: its name is part of paths, and '.' and '..' have "
                "a meaning of their own there; give it another name",
                field="name",
            )

    def start_after(self, record: RegisteredOperator) -> Start:
        """Return how the operator starts after a running version. The start ``keep`` continues its state."""
        return "keep" if self.keeps(record.body) else self.start

    def is_registered_as(self, record: RegisteredOperator) -> bool:
        """Return whether a record has the same inputs, body and parts as this draft."""
        return (record.inputs, record.body, record.parts) == (self._sources(record.stream), self.body, self.parts)

    def _sources(self, stream: str) -> tuple[tuple[str, str], ...]:
        return tuple((source.stream, source.key) for source in self.inputs) or ((stream, self.route),)

    def record(self, stream: str, version: int, now_us: int) -> RegisteredOperator:
        return RegisteredOperator(
            kind=self.kind,
            name=self.name,
            stream=stream,
            version=version,
            is_active=True,
            registered_us=now_us,
            inputs=self._sources(stream),
            body=self.body,
            route=self.route,
            into=self.into,
            parts=self.parts,
        )


def pattern_draft(
    *,
    name: str,
    text: str,
    is_guarded: bool = True,
    start: Start = "fresh",
    quiet: Mapping[str, Any] = MappingProxyType({}),
    **members: Any,
) -> OperatorDraft:
    """Return the draft of a pattern.

    Args:
        name: Name of the pattern.
        text: Text in the pattern language.
        is_guarded: Whether the stream's constraints prune the pattern's partial matches.
        start: What happens to partial matches of the former version: they are dropped (``fresh``), or the former
            version completes them (``migrate``).
        quiet: The members ``suppress``, ``incident`` and ``resolves`` of the pattern's document.
        members: Further members of ``OperatorDraft``.
    """
    body = {"text": text, "is_guarded": is_guarded, **quiet}
    return OperatorDraft(kind=PATTERN, name=name, body=body, start=start, **members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The workflow that a stream follows.

    The mode ``exact`` uses the workflow's automaton. The mode ``tables`` uses its constraints. The mode ``auto`` uses
    the automaton if the workflow has an automaton, otherwise the constraints.
    """

    workflow: str
    version: int
    mode: FollowMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsDraft:
    """A constraint set to be registered for a stream.

    Attributes:
        document: The whole set in canonical form, with the hand-written constraints, the constraints of the followed
            workflow, and the stream's end events.
        notices: Sentences about parts of the upload that are ambiguous, contradictory or left out.
        own: The hand-written constraints, in canonical form.
    """

    document: Mapping[str, Any]
    notices: tuple[str, ...]
    own: Mapping[str, Any] | None = None
    following: Following | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredConstraints:
    """A registered version of a stream's constraint set.

    Attributes:
        document: The whole set in the canonical form of ``constraints.parse_constraints``, with the stream's end events
            and the constraints of the followed workflow.
        notices: Sentences about parts of the upload that are ambiguous, contradictory or left out.
        uploaded_us: Time of the upload, microseconds UTC.
        own: The hand-written constraints, in the same form. None in records of earlier releases, whose whole document
            is hand-written.
    """

    stream: str
    version: int
    document: Mapping[str, Any]
    notices: tuple[str, ...]
    uploaded_us: int
    own: Mapping[str, Any] | None = None
    following: Following | None = None

    @property
    def written(self) -> Mapping[str, Any]:
        """The hand-written constraints, in canonical form."""
        return self.document if self.own is None else self.own

    def equals(self, draft: ConstraintsDraft) -> bool:
        same = self.document == draft.document and self.following == draft.following
        return same and self.own in (None, draft.own)


class StreamRecord(NamedTuple):
    """A declared stream, with its use of schemas.

    ``since_ms`` is the time of the declaration by Redis' clock, or 0 in records of older releases. It distinguishes a
    stream from a removed stream of the same name. Schema versions do not, because they start again in the new stream.
    """

    declaration: StreamDeclaration
    schemas: SchemaUse
    since_ms: int = 0

    def tagged(self) -> dict[str, Any]:
        """Return all members that a client can set. The entity tag of the stream is computed from these members."""
        return asdict(self.declaration) | ({"schemas": "check"} if self.schemas.is_checked else {})


def read_stream(body: bytes, name: str) -> StreamRecord:
    """Decode the stored record of a stream."""
    fields = decode(body, f"the stream {name!r}")
    try:
        declaration = StreamDeclaration.from_json(fields.get("declaration"))
        return StreamRecord(declaration, read_use(fields), int(fields.get("since_ms", 0)))
    except DeclarationError as error:
        raise RecordFormatError(f"the stored record of the stream {name!r} is damaged: {error}") from error


def read_pattern(body: bytes, name: str) -> RegisteredOperator:
    """Decode the stored record of a pattern."""
    fields = decode(body, f"the pattern {name!r}")
    members = {"text": fields.pop("text"), "is_guarded": fields.pop("is_guarded", True)}
    members |= {SUPPRESSION: fields.pop(SUPPRESSION)} if SUPPRESSION in fields else {}
    inputs = ((fields["stream"], fields.get("route", "")),)
    fields["former_feeds"] = tuple((source, key, into) for source, key, into in fields.get("former_feeds", ()))
    record = RegisteredOperator(kind=PATTERN, inputs=inputs, body=members, **fields)
    return replace(record, parts=pattern_parts(record.definition))


def pattern_parts(definition: Definition) -> tuple[OperatorPart, ...]:
    """Derive the inner operators of a pattern from its definition."""
    return tuple(
        OperatorPart(kind=part.kind, name=part.name, stream=part.inputs[0].stream, key="", into="", body=part.body)
        for part in PatternKind().parts(definition)
    )
