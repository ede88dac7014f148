"""Streams on the wire."""

from __future__ import annotations

from typing import Self, TypeAlias

from pydantic import ConfigDict, Field

from api.wire import WireModel
from service import StreamUsage
from streams import Duplicates, FieldMapping, Late, StreamDeclaration, Ties, key_json


class MappingModel(WireModel):
    """Where plain JSON events keep what is needed: dotted paths."""

    id: str = Field("id", description="Path of the event's id.")
    type: str = Field("type", description="Path of the event type.")
    time: str = Field("time", description="Path of the occurrence time: RFC 3339, or whole microseconds since 1970.")
    data: str | None = Field("data", description="Path of the attributes; null takes the whole object.")


KeyModel: TypeAlias = str | dict[str, str]
"""Where a key is: one path, or one by event type."""


class StreamModel(WireModel):
    """A stream, declared once."""

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
    end_events: list[str] = Field([], description="Types that end a transaction.")
    ties: Ties = Field(
        "log", description="Order of events with equal timestamps: as in the log, or none ('simultaneous')."
    )
    lateness: float | None = Field(
        None,
        ge=0,
        description="Bound of out-of-orderness: seconds that an event may be older than the newest one before it. "
        "Events are sorted by time before they are matched. Null: they are matched in the order in which they come.",
    )
    late: Late = Field(
        "dead_letter",
        description="What to do with events that are later than `lateness`: a dead letter with the reason, nothing "
        "(`drop`), or they are matched out of order (`process`). All are counted.",
    )
    idle_timeout: float | None = Field(
        None, gt=0, description="Session gap: a transaction ends after these seconds of event time without an event."
    )
    quiet_after: float | None = Field(
        None,
        gt=0,
        description="Source idleness: after this many seconds without any event of the stream, event time follows the "
        "wall clock, so that results that wait for time to pass are emitted. Null: event time passes with events only.",
    )
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
