"""Drafts and records of registered resources; older records lack members that have a default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from service.errors import RecordFormatError
from service.stores.conditions import ANY, Condition
from service.stores.records import decode
from service.stores.registry.event_types import SchemaUse, read_use
from service.stores.severities import USUAL_SEVERITY, Severity
from shards import SUPPRESSION, OperatorRefused, PatternKind
from streams import DeclarationError, Definition, Input, Start, StreamDeclaration

FollowMode: TypeAlias = Literal["auto", "exact", "tables"]
State: TypeAlias = Literal["draft", "active", "paused", "suspended", "retired"]
Stage: TypeAlias = Literal["draft", "running", "retired"]
FirstState: TypeAlias = Literal["draft", "active", "paused"]

PATTERN = "pattern"
_NOT_OF_PATTERNS = frozenset(("kind", "inputs", "body", "parts", "held_from", "held_since_us"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """A part of an operator: an inner operator on one stream, registered together with the operator and never listed.

    ``key`` is the further key by which the part listens, ``into`` the derived stream that the part feeds; either may be
    empty.
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
    """An operator of any kind. The body of a pattern has ``text``, ``is_guarded`` and perhaps ``suppression``.

    Attributes:
        is_active: False if the operator is deleted; its version numbers continue if it is registered again.
        inputs: All inputs, as pairs of a stream and the name of a further key (empty: correlation key).
        route: Name of the further key of the first input; empty for the correlation key.
        stage: ``draft`` before the operator first runs, ``running`` from then on, ``retired`` at the end.
        suspension: The pipeline's report of the reason, if the operator is suspended.
        held_from: The version with which the matching state began; 0: this version.
        held_since_us: The time at which the matching state began, microseconds UTC; None: registration of this version.
        former_feeds: The feeds of earlier versions that this version lacks: source, further key and derived stream.
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
        """The operator's state; see ``service.stores.registry.life_cycle``."""
        if self.stage != "running":
            return self.stage
        if self.suspension is not None:
            return "suspended"
        return "paused" if self.is_paused else "active"

    @property
    def is_running(self) -> bool:
        """Whether the operator sees events, or will when it is resumed."""
        return self.is_active and self.stage == "running"

    @property
    def text(self) -> str:
        return str(self.body["text"])

    @property
    def is_guarded(self) -> bool:
        """Whether the stream's constraints terminate partial matches of a pattern early."""
        return bool(self.body["is_guarded"])

    def tagged(self) -> dict[str, Any]:
        """The stored members; a pattern has no kind, inputs or parts, and its body's members are at the top level."""
        fields: dict[str, Any] = asdict(self)
        if not self.former_feeds:
            del fields["former_feeds"]  # so that records and entity tags are those of earlier releases
        if self.kind != PATTERN:
            return fields
        shared = {name: value for name, value in fields.items() if name not in _NOT_OF_PATTERNS}
        return {**shared, **self.body}

    @property
    def is_continued(self) -> bool:
        """Whether this version continues the state of an earlier version."""
        return 0 < self.held_from < self.version

    @property
    def since_us(self) -> int:
        """The time at which the operator's matching state began, microseconds UTC."""
        return self.registered_us if self.held_since_us is None else self.held_since_us

    @property
    def feeders(self) -> tuple[OperatorPart, ...]:
        """The operator, represented as a part, and its parts, as far as they feed derived streams."""
        whole = OperatorPart(
            kind=self.kind, name=self.name, stream=self.stream, key=self.route, into=self.into, body=self.body
        )
        return tuple(part for part in (whole, *self.parts) if part.into)

    @property
    def former_feeders(self) -> tuple[OperatorPart, ...]:
        """The feeds of earlier versions, represented as parts without a body."""
        return tuple(
            OperatorPart(kind=self.kind, name=self.name, stream=stream, key=key, into=into, body={})
            for stream, key, into in self.former_feeds
        )

    def after(self, stored: RegisteredOperator | None) -> RegisteredOperator:
        """This version with the feeds of the stored version and of earlier ones; a draft has fed nothing."""
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


RegisteredPattern: TypeAlias = RegisteredOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDraft:
    """An operator to be registered.

    Raises ``OperatorRefused`` for the names ``.`` and ``..``.

    Attributes:
        inputs: The streams and keys of the inputs; empty: the stream on which the operator is registered, by ``route``.
        route: Name of the further key of the first input; empty for the correlation key.
        severity: Severity of the alerts; None: as before, ``medium`` for a new operator.
        keeps: A function of a former version's body: whether the operator can continue that version's state.
        state: The state that the registration leads to: a ``draft`` is only stored, to run later; a ``paused``
            operator sees no events until it is resumed.
        creates: Whether replacing an operator of the same name is refused.
        required: A function that reads the records that must be unchanged when the operator is stored (see ``Change``);
            called for each attempt, and may raise.
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
    required: Callable[[], tuple[tuple[str, str, bytes], ...]] = tuple

    def __post_init__(self) -> None:
        if self.name in (".", ".."):  # clients remove such segments from paths
            raise OperatorRefused(
                f"the {self.kind} cannot have the name {self.name!r}: its name is part of paths, and '.' and '..' have "
                "a meaning of their own there; give it another name",
                field="name",
            )

    def start_after(self, record: RegisteredOperator) -> Start:
        """How the operator starts after a running version: ``keep`` if it can continue with that version's state."""
        return "keep" if self.keeps(record.body) else self.start

    def is_registered_as(self, record: RegisteredOperator) -> bool:
        """Whether a record has the inputs, the body and the parts of this draft."""
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
    """A pattern to be registered.

    ``start``: partial matches of the version before are dropped (``fresh``), or that version completes them
    (``migrate``). ``quiet``: the members ``suppress``, ``incident`` and ``resolves`` of the document. ``members``:
    further members of ``OperatorDraft``.
    """
    body = {"text": text, "is_guarded": is_guarded, **quiet}
    return OperatorDraft(kind=PATTERN, name=name, body=body, start=start, **members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The workflow that a stream follows; ``auto`` uses the workflow's automaton, else the workflow's constraints."""

    workflow: str
    version: int
    mode: FollowMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsDraft:
    """A constraint set to be given to a stream.

    Attributes:
        document: The set in canonical form: hand-written constraints, the constraints of the followed workflow, the
            stream's end events.
        notices: Sentences about ambiguous, contradictory or left-out parts of the upload.
    """

    document: Mapping[str, Any]
    notices: tuple[str, ...]
    own: Mapping[str, Any] | None = None
    following: Following | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredConstraints:
    """A version of a stream's constraint set, uploaded at a time in microseconds UTC.

    ``document`` is in the canonical form of ``constraints.parse_constraints``, including the stream's end events and
    the constraints of the followed workflow. ``own`` is the hand-written set, in the same form; None in records of
    earlier releases, whose whole document is hand-written. ``notices``: sentences about ambiguous, contradictory or
    left-out parts of the upload.
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
        """The hand-written set, in canonical form."""
        return self.document if self.own is None else self.own

    def equals(self, draft: ConstraintsDraft) -> bool:
        same = self.document == draft.document and self.following == draft.following
        return same and self.own in (None, draft.own)


class StreamRecord(NamedTuple):
    """A declared stream: the declaration, and whether events are checked against schemas.

    ``since_ms``: time of the declaration by Redis' clock; 0 in records of older releases. A stream that is declared
    again under the name of a removed one has another time, and its schemas are numbered from the beginning.
    """

    declaration: StreamDeclaration
    schemas: SchemaUse
    since_ms: int = 0

    def tagged(self) -> dict[str, Any]:
        """All members that a change can set: the declaration, and ``schemas`` if events are checked."""
        return asdict(self.declaration) | ({"schemas": "check"} if self.schemas.is_checked else {})


def read_stream(body: bytes, name: str) -> StreamRecord:
    """Read a stored stream."""
    fields = decode(body, f"the stream {name!r}")
    try:
        declaration = StreamDeclaration.from_json(fields.get("declaration"))
        return StreamRecord(declaration, read_use(fields), int(fields.get("since_ms", 0)))
    except DeclarationError as error:
        raise RecordFormatError(f"the stored record of the stream {name!r} is damaged: {error}") from error


def read_pattern(body: bytes, name: str) -> RegisteredOperator:
    """Read a stored pattern."""
    fields = decode(body, f"the pattern {name!r}")
    members = {"text": fields.pop("text"), "is_guarded": fields.pop("is_guarded", True)}
    members |= {SUPPRESSION: fields.pop(SUPPRESSION)} if SUPPRESSION in fields else {}
    inputs = ((fields["stream"], fields.get("route", "")),)
    fields["former_feeds"] = tuple((source, key, into) for source, key, into in fields.get("former_feeds", ()))
    record = RegisteredOperator(kind=PATTERN, inputs=inputs, body=members, **fields)
    return replace(record, parts=pattern_parts(record.definition))


def pattern_parts(definition: Definition) -> tuple[OperatorPart, ...]:
    """The parts of a pattern, which follow from its definition."""
    return tuple(
        OperatorPart(kind=part.kind, name=part.name, stream=part.inputs[0].stream, key="", into="", body=part.body)
        for part in PatternKind().parts(definition)
    )
