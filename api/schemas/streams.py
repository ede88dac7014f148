"""Streams on the wire."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field

from api.wire import WireModel
from streams import FieldMapping, StreamDeclaration, Ties


class MappingModel(WireModel):
    """Where plain JSON events keep what is needed: dotted paths."""

    id: str = Field("id", description="Path of the event's id.")
    type: str = Field("type", description="Path of the event type.")
    time: str = Field("time", description="Path of the occurrence time: RFC 3339, or whole microseconds since 1970.")
    data: str | None = Field("data", description="Path of the attributes; null takes the whole object.")


class StreamModel(WireModel):
    """A stream, declared once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "orders", "key": "data.transaction_id", "end_events": ["CloseOrder", "CancelOrder"]}]
        }
    )

    name: str = Field(description="Letters, digits, '.', '_' and '-'; at most 100.")
    key: str = Field("subject", description="Path of the correlation key, which names the transaction of an event.")
    event_types: list[str] = Field([], description="Types that may come; empty means any.")
    end_events: list[str] = Field([], description="Types that end a transaction.")
    ties: Ties = Field(
        "log", description="What events of one time are: ordered as in the log, or 'simultaneous' and not ordered."
    )
    mapping: MappingModel = MappingModel()

    def to_domain(self) -> StreamDeclaration:
        """The declaration that is meant."""
        return StreamDeclaration(
            name=self.name,
            key=self.key,
            event_types=tuple(self.event_types),
            end_events=tuple(self.end_events),
            ties=self.ties,
            mapping=FieldMapping(**self.mapping.model_dump()),
        )

    @classmethod
    def from_domain(cls, declaration: StreamDeclaration) -> Self:
        """The wire form of a declaration."""
        mapping = declaration.mapping
        return cls(
            name=declaration.name,
            key=declaration.key,
            event_types=list(declaration.event_types),
            end_events=list(declaration.end_events),
            ties=declaration.ties,
            mapping=MappingModel(id=mapping.id, type=mapping.type, time=mapping.time, data=mapping.data),
        )


class StreamList(WireModel):
    """All streams, by name."""

    items: list[StreamModel]
