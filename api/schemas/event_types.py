"""Schemas of event types on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field

from api.wire import From, PartModel, Time, WireModel
from service import EventType, unknown_words

_EXAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["price"],
    "properties": {"price": {"type": "number", "minimum": 0}, "currency": {"enum": ["EUR", "USD"]}},
}
_CONTENT = {"schema": {"type": "object"}, "example": _EXAMPLE}

BODY: dict[str, Any] = {
    "required": True,
    "content": {"application/json": _CONTENT, "application/schema+json": _CONTENT},
}


class EventTypeModel(WireModel):
    """The schema of an event type."""

    stream: str
    type: Annotated[str, From("name")]
    version: int = Field(description="Counts the changes of the stream's schemas.")
    json_schema: Annotated[dict[str, Any], From("schema")] = Field(
        description="JSON Schema (draft 2020-12) of the events' `data`."
    )
    created_at: Time
    warnings: list[str] = Field([], description="Unknown keywords, which have no effect.")

    @classmethod
    def of(cls, stream: str, event_type: EventType) -> Self:
        return cls.copying(event_type, stream=stream, warnings=unknown_words(dict(event_type.schema)))


class EventTypeList(PartModel[EventTypeModel]):
    """The types of a stream that have schemas, by name, or the versions of one type."""
