"""Streams on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from api.wire import ChangesModel, From, PartModel, Text, Time, WireModel
from service import Decision, MeasuredLateness, StreamRecord, StreamUsage, StreamUse
from streams import (
    ColumnType,
    Duplicates,
    Late,
    Lateness,
    LocalTimes,
    MaxAhead,
    StreamDeclaration,
    Ties,
    TimeUnit,
    ahead_json,
    ahead_of,
    format_time,
    key_json,
    lateness_json,
    lateness_of,
)

_SECOND_US = 1_000_000
_BOUND = "Out-of-orderness bound. Null: events are matched in the order of arrival."
_LATENESS = (
    "Out-of-orderness bound, in seconds: events within it are sorted by time before they are "
    "matched. `auto`: the bound is measured; an object sets its limits. Null: events are matched "
    "in the order of arrival."
)
_LATE = (
    "What to do with events beyond the lateness bound: make a dead letter, drop them (`drop`), or match them out of "
    "order (`process`). All are counted."
)
_IDLE = "Session gap: a transaction ends after this many seconds of event time without an event."
_QUIET = (
    "Source idleness: after this many seconds without any event of the stream, event time follows the wall clock, so "
    "that results that wait for time to pass are emitted. Null: event time passes with events only."
)
_AHEAD = (
    "How far the time of an event or punctuation may be ahead of the service's clock, in seconds; "
    "others are refused, as they would advance the time of the whole stream. `none`: no limit. "
    "Null: six hours."
)
_ENDS = "Types that end a transaction."
_SCHEMAS = "With 'check', later events that violate the schema of their type are rejected."
_DESCRIPTION = "For people; at most 4,000 characters."


SchemaChecks: TypeAlias = Literal["off", "check"]


class MappingModel(WireModel):
    """The mapping of plain JSON and files to events: paths of the members, and the formats of times and files."""

    id: str | list[str] = Field("id", description="Path of the event id; several are joined with colons.")
    type: str = Field("type", description="Path of the event type.")
    time: str = Field("time", description="Path of the occurrence time: RFC 3339, or a number since 1970.")
    data: str | None = Field("data", description="Path of the attributes; null takes the whole object.")
    time_unit: TimeUnit = Field("auto", description="Unit of numeric times since 1970; `auto`: by magnitude.")
    zone: str | None = Field(None, description="Time zone of times without an offset, such as `Europe/Berlin`.")
    time_format: str | None = Field(
        None, description="Format of times: `day-first`, `month-first`, or a format of `strptime`."
    )
    local_times: LocalTimes = Field(
        "earlier", description="How to read local times that a change of clocks repeats or skips."
    )
    delimiter: str | None = Field(None, description="CSV files: separator of columns; null: detected.")
    encoding: str | None = Field(None, description="Encoding of files; null: UTF-8, or UTF-16 with a byte order mark.")
    columns: dict[str, ColumnType] = Field({}, description="CSV files: types of columns; others by their values.")


KeyModel: TypeAlias = str | dict[str, str]
"""Place of a key: one path, or a path by event type."""


class LatenessModel(WireModel):
    """The bound of out-of-orderness: fixed, or measured within limits."""

    mode: Literal["fixed", "auto"] = Field(description="'auto': the bound follows the measured lags.")
    seconds: float | None = Field(None, ge=0, description="'fixed': the bound; otherwise null.")
    at_least_s: float | None = Field(None, ge=0, description="'auto': the bound is never smaller (default: 0).")
    at_most_s: float | None = Field(
        None,
        ge=0,
        description="'auto': the bound is never larger (default: 3600). Events further behind are late, and do not "
        "influence the bound.",
    )
    start_s: float | None = Field(
        None, ge=0, description="'auto': the bound before anything was measured, within the limits (default: 60)."
    )
    late_share: float | None = Field(
        None, ge=0, lt=1, description="'auto': share of the events that may be late; 0: it follows the largest lag."
    )

    @classmethod
    def of(cls, declared: Lateness | None) -> Self | None:
        form = lateness_json(declared)
        return None if form is None else cls(**form)


class AheadModel(WireModel):
    """The limit on how far event times may be ahead of the clock."""

    mode: Literal["default", "fixed", "unlimited"]
    seconds: float | None = Field(None, ge=0, description="The limit in force; null: none.")

    @classmethod
    def from_domain(cls, declared: MaxAhead | None) -> Self:
        return cls(**ahead_json(declared))


NewLateness: TypeAlias = Annotated[float, Field(ge=0)] | Literal["auto"] | LatenessModel | None
"""Lateness in a request; short forms are a number of seconds, and ``auto``."""
NewAhead: TypeAlias = Annotated[float, Field(ge=0)] | Literal["none"] | AheadModel | None
"""Limit of times ahead of the clock in a request; short forms are a number of seconds, and ``none``."""


def _documents_form(value: Any) -> Any:
    """Convert the form of a lateness in documents, ``{"auto": {…}}``, to its form in the API."""
    if isinstance(value, dict) and value.keys() == {"auto"} and isinstance(value["auto"], dict):
        return {
            "mode": "auto",
            **{f"{name}_s" if name in _LIMITS else name: setting for name, setting in value["auto"].items()},
        }
    return value


_LIMITS = ("at_least", "at_most", "start")
LatenessGiven: TypeAlias = Annotated[NewLateness, BeforeValidator(_documents_form)]


def _either(name: str) -> AliasChoices:
    """Return the two names of a member with a duration: with the unit, as in the API, and without, as in documents."""
    return AliasChoices(name, name.removesuffix("_s"))


class _StreamMembers(WireModel):
    """The members of a stream that have the same form in declarations and answers."""

    name: str = Field(description="Letters, digits, '.', '_' and '-'; at most 100.")
    key: KeyModel = Field(
        "subject",
        description="Path of the correlation key, which names the transaction of an event. Or a path by event type, "
        'such as `{"Payment": "data.ref", "*": "data.id"}`, `*` being every other type.',
    )
    keys: dict[str, KeyModel] = Field(
        {},
        description="Further correlation keys by name: paths of attributes, such as `data.customer_id`, each also by "
        "event type. A pattern that says `WHERE [customer_id]` is matched on the transactions of that key.",
    )
    event_types: list[str] = Field([], description="Allowed event types; empty means any.")
    end_events: list[str] = Field([], description=_ENDS)
    ties: Ties = Field(
        "log", description="Order of events with equal timestamps: as in the log, or none ('simultaneous')."
    )
    late: Late = Field("dead_letter", description=_LATE)
    idle_timeout_s: float | None = Field(None, gt=0, description=_IDLE, validation_alias=_either("idle_timeout_s"))
    quiet_after_s: float | None = Field(None, gt=0, description=_QUIET, validation_alias=_either("quiet_after_s"))
    mapping: MappingModel = MappingModel()
    duplicates: Duplicates = Field(
        "drop",
        description="What to do with an event whose id (of CloudEvents: source and id) the stream has accepted before: "
        "it is dropped and counted, or accepted again ('keep').",
    )
    derived: bool = Field(
        False,
        description="Whether patterns with INTO make its events; clients send none. The first such pattern "
        "declares the stream; declare it before to give it event types, end events or an idle "
        "timeout.",
    )
    schemas: SchemaChecks = Field("off", description=_SCHEMAS)
    description: str = Field("", max_length=4_000, description=_DESCRIPTION)


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_none=True) if isinstance(value, WireModel) else value


class NewStream(_StreamMembers):
    """A stream to declare. The members that determine how its events are read cannot be changed later."""

    lateness: LatenessGiven = Field(None, description=_LATENESS)
    max_ahead: NewAhead = Field(None, description=_AHEAD)

    def to_domain(self) -> StreamDeclaration:
        short = {"lateness": _plain(self.lateness), "max_ahead": _plain(self.max_ahead)}
        return StreamDeclaration.from_json({**self.model_dump(exclude={"schemas"}), **short})


class StreamModel(_StreamMembers):
    """A registered stream. The members that determine how its events are read cannot be changed."""

    lateness: LatenessModel | None = Field(description=_BOUND)
    max_ahead: AheadModel = Field(description=_AHEAD)

    @classmethod
    def of(cls, record: StreamRecord, **members: Any) -> Self:
        """Convert the record of a stream. ``members`` are further members of a subclass."""
        declaration = record.declaration
        return cls.copying(
            declaration,
            schemas="check" if record.schemas.is_checked else "off",
            idle_timeout_s=declaration.idle_timeout,
            quiet_after_s=declaration.quiet_after,
            max_ahead=AheadModel.from_domain(declaration.max_ahead),
            key=key_json(declaration.key),
            keys={name: key_json(key) for name, key in declaration.keys.items()},
            lateness=LatenessModel.of(declaration.lateness),
            mapping=MappingModel.model_validate(declaration.mapping.to_json()),
            **members,
        )


class DeclaredStream(StreamModel):
    """A stream that was declared or changed, with warnings about probable mistakes."""

    warnings: list[str] = Field([], description="End events that are probably misspelt event types.")


class LatenessSeen(WireModel):
    """The measured lags of the newest events of a stream."""

    events: int = Field(description="The number of events.")
    largest_s: float = Field(description="The largest lag of an event behind the newest event before it.")
    beyond: int = Field(
        description="The number of events further behind than `at_most_s`, which do not influence the bound."
    )


class LatenessChangeModel(WireModel):
    """A change of a measured bound of out-of-orderness."""

    at: Time = Field(description="When it was decided.")
    bound_s: float = Field(description="The new bound.")
    seen: LatenessSeen = Field(description="The measurement that led to it.")

    @classmethod
    def from_domain(cls, decision: Decision) -> Self:
        bound_us, seen = decision.record["bound"], decision.record["seen"]
        return cls.copying(decision, bound_s=bound_us / _SECOND_US, seen=LatenessSeen.copying(seen))


class MeasuredLatenessModel(WireModel):
    """The measured bound of out-of-orderness of a stream with `lateness: auto`."""

    bound_s: float = Field(description="The bound in force.")
    since: Time | None = Field(description="Since when the bound is in force; null: since the start.")
    seen: LatenessSeen | None = Field(description="The current measurement; null before the first events.")
    total_changes: Annotated[int, From("total")] = Field(description="The number of changes so far.")
    changes: Annotated[list[LatenessChangeModel], From("decisions")] = Field(
        description="The newest changes, at most 20, oldest first."
    )

    @classmethod
    def from_domain(cls, measured: MeasuredLateness) -> Self:
        change_times = [
            decision.at_us for decision in measured.decisions if decision.record["bound"] == measured.bound_us
        ]
        seen = None if measured.seen is None else LatenessSeen.copying(measured.seen)
        return cls.copying(measured, since=format_time(change_times[-1]) if change_times else None, seen=seen)


class StreamDetail(StreamModel):
    """A stream, with the operators that produce or read its events."""

    producers: list[str] = Field([], description="Derived streams: the patterns that make the events.")
    consumers: list[str] = Field([], description="The patterns and other operators that read its events.")
    held_back_by: str | None = Field(
        None,
        description="Derived streams: what their events wait for, until no older ones can come.",
    )
    measured_lateness: MeasuredLatenessModel | None = Field(
        None, description="With `lateness: auto`: the bound in force, and the measurement that led to it."
    )

    @classmethod
    def used(cls, record: StreamRecord, usage: StreamUsage) -> Self:
        """Convert the record of a stream, its producers and consumers, and its measured lateness."""
        return cls.of(
            record,
            producers=sorted({use.name for use in usage.uses if use.feeds}),
            consumers=sorted({use.name for use in usage.uses if not use.feeds}),
            held_back_by=usage.waits_for,
            measured_lateness=usage.lateness,
        )


class StreamList(PartModel[StreamModel]):
    """All streams, by name."""


class StreamChanges(ChangesModel):
    """Changes of a stream. Omitted members do not change, and null resets a member."""

    created = (NewStream,)

    lateness: LatenessGiven = Field(None, description=_LATENESS)
    late: Late | None = Field(None, description=_LATE)
    idle_timeout_s: float | None = Field(
        None, gt=0, description=f"{_IDLE} Null: it stays open.", validation_alias=_either("idle_timeout_s")
    )
    quiet_after_s: float | None = Field(None, gt=0, description=_QUIET, validation_alias=_either("quiet_after_s"))
    max_ahead: NewAhead = Field(None, description=_AHEAD)
    end_events: list[str] | None = Field(None, description=f"{_ENDS} Replaces all present ones.")
    schemas: SchemaChecks | None = Field(None, description=_SCHEMAS)
    description: str | None = Field(None, max_length=4_000, description=_DESCRIPTION)

    @model_validator(mode="before")
    @classmethod
    def _has_changeable_members(cls, value: Any) -> Any:
        fixed = [name for name in StreamModel.model_fields if name not in cls.model_fields]
        if isinstance(value, dict) and (names := [name for name in fixed if name in value]):
            raise ValueError(
                f"{', '.join(names)} of a declared stream cannot be changed, only {', '.join(cls.model_fields)}."
                " Declare another stream, or delete this one and declare it again"
            )
        return value

    def to_domain(self) -> dict[str, Any]:
        """Return the changes by name of the declaration's member."""
        names = self.model_fields_set - {"schemas"}
        changes = {name.removesuffix("_s"): getattr(self, name) for name in names}
        for name, read in (("lateness", lateness_of), ("max_ahead", ahead_of)):
            if name in changes:
                changes[name] = read(_plain(changes[name]))
        return {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}


class StreamUseModel(WireModel):
    """A resource that uses or belongs to a stream."""

    kind: str = Field(
        description="`pattern` or another kind of operator, `constraints`, `workflow` (which stays, but is no "
        "longer followed), `webhook`, `sink`, `event-type`, `feed`."
    )
    name: str
    state: Text = Field(description="State of a pattern or another operator.")


class StreamRemoval(WireModel):
    """The resources that were deleted with a stream, or would be."""

    stream: str
    dry_run: bool
    items: list[StreamUseModel]

    @classmethod
    def of(cls, stream: str, uses: Sequence[StreamUse], *, dry_run: bool) -> Self:
        return cls(stream=stream, dry_run=dry_run, items=[StreamUseModel.from_domain(use) for use in uses])


class StreamEvent(WireModel):
    """An event of a stream."""

    id: str
    type: str
    time: Time
    key: str = Field(description="Key of its transaction.")
    data: dict[str, Any]


class StreamEventList(WireModel):
    """A page of the events of a stream, oldest first."""

    items: list[StreamEvent]
    next: str | None = Field(description="Send as 'after' for the next page; null when this is currently the last.")
    after: str = Field(description="Cursor after everything examined; send it later to get newer events.")
    trimmed_until: Annotated[Time | None, From("trimmed_us")] = Field(
        description="Not null: the log holds nothing older than this time, so events may be missing before the "
        "first of this page."
    )
