"""Dead letters on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from api.wire import Older, WireModel
from service.stores import RecentPage
from streams import format_time


class DeadLetterModel(WireModel):
    """An event, or an entry of the log, that could not be taken."""

    id: str
    stream: str
    code: str
    reason: str
    index: int | None = Field(None, description="Intake: the event's place in its request, from 0.")
    received_at: str | None = Field(None, description="Intake: when.")
    event: str | None = Field(None, description="Intake: the event as JSON, cut at 4000 characters.")
    origin: dict[str, Any] | None = Field(
        None, description="Feeds: the file and place, or topic, partition and offset."
    )
    shard: int | None = Field(None, description="Pipeline: the shard of the entry.")
    position: str | None = Field(None, description="Pipeline: the entry's place in the log of its shard.")
    kind: str | None = Field(None, description="Pipeline: the entry's kind.")
    route: str | None = Field(None, description="Pipeline: the stream's further key that the entry's events are for.")

    @classmethod
    def from_domain(cls, letter: Mapping[str, Any]) -> Self:
        """The wire form of a stored dead letter."""
        known = {name: letter[name] for name in cls.model_fields if name in letter}
        received_us = letter.get("received_us")
        return cls(**known, received_at=None if received_us is None else format_time(received_us))


class DeadLetterCount(WireModel):
    """How many dead letters there were for one reason."""

    stream: str
    code: str
    count: int


class DeadLetterList(WireModel):
    """Recent dead letters, newest first, and all that there were, counted by reason."""

    items: list[DeadLetterModel]
    counts: list[DeadLetterCount]
    next: Older

    @classmethod
    def from_domain(cls, page: RecentPage, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of a page and all counters."""
        return cls(
            items=[DeadLetterModel.from_domain(letter) for letter in page.records],
            counts=[DeadLetterCount.model_validate(count) for count in counts],
            next=page.next,
        )
