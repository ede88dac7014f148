"""Streams on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from api.wire import WireModel
from service import EventPage, StreamUsage, StreamUse
from streams import CHANGEABLE, Duplicates, FieldMapping, Late, StreamDeclaration, Ties, format_time, key_json

_NOT_NULL = ("late", "end_events", "description")
_LATENESS = (
    "Bound of out-of-orderness: seconds that an event may be older than the newest one before it. Events are sorted by "
    "time before they are matched. Null: they are matched in the order in which they come."
)
_LATE = (
    "What to do with events that are later than `lateness`: a dead letter with the reason, nothing (`drop`), or they "
    "are matched out of order (`process`). All are counted."
)
_IDLE = "Session gap: a transaction ends after these seconds of event time without an event."
_QUIET = (
    "Source idleness: after this many seconds without any event of the stream, event time follows the wall clock, so "
    "that results that wait for time to pass are emitted. Null: event time passes with events only."
)
_ENDS = "Types that end a transaction."
_DESCRIPTION = "For people; at most 4,000 characters."


class MappingModel(WireModel):
    """Where plain JSON events keep what is needed: dotted paths."""

    id: str = Field("id", description="Path of the event's id.")
    type: str = Field("type", description="Path of the event type.")
    time: str = Field("time", description="Path of the occurrence time: RFC 3339, or whole microseconds since 1970.")
    data: str | None = Field("data", description="Path of the attributes; null takes the whole object.")


KeyModel: TypeAlias = str | dict[str, str]
"""Where a key is: one path, or one by event type."""


class StreamModel(WireModel):
    """A stream. What says how its events are read is declared once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "orders", "key": "data.transaction_id", "end_events": ["CloseOrder", "CancelOrder"]}]
        }
    )

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
    lateness: float | None = Field(None, ge=0, description=_LATENESS)
    late: Late = Field("dead_letter", description=_LATE)
    idle_timeout: float | None = Field(None, gt=0, description=_IDLE)
    quiet_after: float | None = Field(None, gt=0, description=_QUIET)
    mapping: MappingModel = MappingModel()
    duplicates: Duplicates = Field(
        "drop",
        description="What to do with an event whose id (of CloudEvents: source and id) the stream has accepted before: "
        "it is dropped and counted, or accepted again ('keep').",
    )
    derived: bool = Field(
        False,
        description="Whether patterns with INTO make its events; nobody posts events to it then. The first such "
        "pattern declares its stream; declare it before to give it event types, end events or an idle timeout.",
    )
    description: str = Field("", max_length=4_000, description=_DESCRIPTION)

    def to_domain(self) -> StreamDeclaration:
        """The declaration that is meant."""
        return StreamDeclaration(
            name=self.name,
            key=self.key,
            keys=dict(self.keys),
            event_types=tuple(self.event_types),
            end_events=tuple(self.end_events),
            ties=self.ties,
            lateness=self.lateness,
            late=self.late,
            idle_timeout=self.idle_timeout,
            quiet_after=self.quiet_after,
            mapping=FieldMapping(**self.mapping.model_dump()),
            duplicates=self.duplicates,
            derived=self.derived,
            description=self.description,
        )

    @classmethod
    def from_domain(cls, declaration: StreamDeclaration) -> Self:
        """The wire form of a declaration."""
        mapping = declaration.mapping
        return cls(
            name=declaration.name,
            key=key_json(declaration.key),
            keys={name: key_json(key) for name, key in declaration.keys.items()},
            event_types=list(declaration.event_types),
            end_events=list(declaration.end_events),
            ties=declaration.ties,
            lateness=declaration.lateness,
            late=declaration.late,
            idle_timeout=declaration.idle_timeout,
            quiet_after=declaration.quiet_after,
            mapping=MappingModel(id=mapping.id, type=mapping.type, time=mapping.time, data=mapping.data),
            duplicates=declaration.duplicates,
            derived=declaration.derived,
            description=declaration.description,
        )


class StreamDetail(StreamModel):
    """A stream, who makes its events, and who listens to them."""

    producers: list[str] = Field([], description="Of a derived stream, the patterns that make its events.")
    consumers: list[str] = Field([], description="The patterns and other operators that listen to it.")
    waits_for: str | None = Field(
        None,
        description="Of a derived stream whose events wait until no older ones can come: what holds them back.",
    )

    @classmethod
    def of(cls, declaration: StreamDeclaration, usage: StreamUsage) -> Self:
        """The wire form of a declaration and of what is known besides."""
        plain = StreamModel.from_domain(declaration)
        consumers = sorted({use.name for use in usage.uses if not use.feeds})
        producers = sorted({use.name for use in usage.uses if use.feeds})
        return cls(**plain.model_dump(), producers=producers, consumers=consumers, waits_for=usage.waits_for)


class StreamList(WireModel):
    """All streams, by name."""

    items: list[StreamModel]


class StreamChanges(WireModel):
    """What is to be different about a stream; what is left out stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"lateness": 60, "late": "drop"}, {"idle_timeout": None}]}
    )

    lateness: float | None = Field(None, ge=0, description=_LATENESS)
    late: Late | None = Field(None, description=_LATE)
    idle_timeout: float | None = Field(None, gt=0, description=f"{_IDLE} Null: it stays open.")
    quiet_after: float | None = Field(None, gt=0, description=_QUIET)
    end_events: list[str] | None = Field(None, description=f"{_ENDS} In place of all that there were.")
    description: str | None = Field(None, max_length=4_000, description=_DESCRIPTION)

    @model_validator(mode="before")
    @classmethod
    def _changes_what_may_change(cls, value: Any) -> Any:
        fixed = [name for name in StreamModel.model_fields if name not in CHANGEABLE]
        if isinstance(value, dict) and (asked := [name for name in fixed if name in value]):
            raise ValueError(
                f"{', '.join(asked)} of a declared stream cannot be changed; what can is {', '.join(CHANGEABLE)}. "
                "Declare another stream, or delete this one and declare it again"
            )
        return value

    @model_validator(mode="after")
    def _has_no_null(self) -> Self:
        if nulls := [name for name in _NOT_NULL if name in self.model_fields_set and getattr(self, name) is None]:
            raise ValueError(f"{', '.join(nulls)} cannot be null; leave out members that should stay")
        return self

    def to_domain(self) -> dict[str, Any]:
        """The changes by member."""
        found = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


class StreamUseModel(WireModel):
    """Something that is on a stream."""

    kind: str = Field(
        description="`pattern` or another kind of operator, `constraints`, `workflow` (which is only no longer "
        "followed), `webhook`, `event-type`, `feed`."
    )
    name: str
    state: str | None = Field(description="Of a pattern or another operator.")


class StreamRemoval(WireModel):
    """What is on a stream, and was or would be deleted with it."""

    stream: str
    dry_run: bool
    items: list[StreamUseModel]

    @classmethod
    def of(cls, stream: str, uses: Sequence[StreamUse], *, dry_run: bool) -> Self:
        """The wire form."""
        items = [StreamUseModel(kind=use.kind, name=use.name, state=use.state or None) for use in uses]
        return cls(stream=stream, dry_run=dry_run, items=items)


class StreamEvent(WireModel):
    """An event of a stream."""

    id: str
    type: str
    time: str
    key: str = Field(description="Of its transaction.")
    data: dict[str, Any]


class StreamEventList(WireModel):
    """A page of the events of a stream, oldest first."""

    items: list[StreamEvent]
    next: str | None = Field(description="Send as 'after' for the next page; null when this is currently the last.")
    after: str = Field(description="Cursor behind what was examined; send it later to get newer events.")
    trimmed_until: str | None = Field(
        description="The log holds nothing that came before this time, though the page begins earlier: events may be "
        "missing before its first. Null: none is missing."
    )

    @classmethod
    def from_domain(cls, page: EventPage) -> Self:
        """The wire form of a page."""
        return cls(
            items=[StreamEvent(**event) for event in page.items],
            next=page.after if page.has_more else None,
            after=page.after,
            trimmed_until=None if page.trimmed_us is None else format_time(page.trimmed_us),
        )
