"""Dead letters on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from api.wire import PageModel, Time, WireModel
from service import Page, Replayed, ReplayOutcome

_LISTED_CHARS = 4_000


class ReplayModel(WireModel):
    """The result of sending a dead letter again."""

    id: str = Field(description="Id of the dead letter.")
    at: Time
    is_accepted: bool = Field(description="Whether the event was accepted.")
    code: str | None = Field(description="Code of the reason, if the event was refused.")
    detail: str | None


class ReplayedList(WireModel):
    """The results of sending dead letters again."""

    items: list[ReplayModel] = Field(description="In the order in which they were sent: the oldest first.")
    left: int = Field(description="The number of dead letters that are still not accepted.")

    @classmethod
    def from_domain(cls, replayed: Replayed) -> Self:
        items = [ReplayModel.copying(outcome, id=id_) for id_, outcome in replayed.outcomes.items()]
        return cls(items=items, left=replayed.left)


class DeadLetterModel(WireModel):
    """An event or a log entry that could not be processed."""

    id: str
    stream: str
    code: str
    reason: str
    index: int | None = Field(None, description="Intake: the event's place in its request, from 0.")
    received_at: Time | None = Field(None, description="Intake: when it was received.")
    event: str | None = Field(None, description="The event as JSON; lists cut it at 4000 characters.")
    origin: dict[str, Any] | None = Field(
        None, description="Feeds: the file and place, or topic, partition and offset."
    )
    shard: int | None = Field(None, description="Pipeline: the shard of the entry.")
    position: str | None = Field(None, description="Pipeline: the entry's place in the log of its shard.")
    kind: str | None = Field(None, description="Pipeline: the entry's kind.")
    route: str | None = Field(None, description="Pipeline: the stream's further key that the entry's events are for.")
    pattern: str | None = Field(None, description="Limits of a pattern: its name.")
    version: int | None = Field(None, description="Limits of a pattern: its version.")
    key: str | None = Field(None, description="Limits of a pattern: the correlation key of the trace.")
    event_id: str | None = Field(None, description="Limits of a pattern: the event; empty where time passed.")
    event_type: str | None = Field(None, description="Limits of a pattern: the type of the event.")
    work: int | None = Field(None, description="work-limit: the partial matches met beyond the limit.")
    replay: ReplayModel | None = Field(None, description="The last result of sending it again.")

    @classmethod
    def with_outcome(cls, letter: Mapping[str, Any], outcome: ReplayOutcome | None) -> Self:
        """Convert a stored dead letter, and the result of sending it again."""
        replay = None if outcome is None else ReplayModel.copying(outcome, id=letter["id"])
        return cls.copying(letter, replay=replay)

    @classmethod
    def listed(cls, letter: Mapping[str, Any], outcome: ReplayOutcome | None) -> Self:
        """Convert a dead letter for a list. Its event is cut to a maximum length."""
        event = letter.get("event")
        if event is not None and len(event) > _LISTED_CHARS + 1:
            letter = {**letter, "event": event[:_LISTED_CHARS] + "…"}
        return cls.with_outcome(letter, outcome)


class DeadLetterDetail(DeadLetterModel):
    """A dead letter with at most 32,000 characters of its event."""

    whole: bool = Field(False, description="Intake: whether the event is whole, so that it can be sent again.")


class DeadLetterCount(WireModel):
    """The number of dead letters for one reason."""

    stream: str
    code: str
    count: int


class DeadLetterList(PageModel[DeadLetterModel]):
    """Recent dead letters, and the total number by reason."""

    counts: list[DeadLetterCount]

    @classmethod
    def of(cls, page: Page, counts: Sequence[Mapping[str, Any]], outcomes: Sequence[ReplayOutcome | None]) -> Self:
        return cls(
            items=[
                DeadLetterModel.listed(*letter_outcome) for letter_outcome in zip(page.items, outcomes, strict=True)
            ],
            counts=[DeadLetterCount.copying(count) for count in counts],
            next=page.next,
            after=page.after,
        )
