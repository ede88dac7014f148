"""Suspensions on the wire; the same form goes to webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from api.wire import Older, WireModel
from service import USUAL_SEVERITY, RecentPage, Severity

EXAMPLE: dict[str, Any] = {
    "type": "pattern.suspended",
    "id": "0cc175b9c0f1b6a831c399e269772661",
    "stream": "orders",
    "pattern": "rising",
    "version": 1,
    "key": "t7",
    "event": "e5812",
    "event_type": "Quote",
    "time": "2026-01-01T09:45:00Z",
    "shard": 3,
    "budget": {"per_event": 1_000, "per_trace": 10_000_000, "traces": 10, "forgiven_after": 1_000_000},
    "reason": "the pattern 'rising' (version 1) is suspended: its events met more partial matches than its budget "
    "allows in more than 10 traces",
    "severity": "high",
}


class WorkBudgetModel(WireModel):
    """How much work a pattern may cost, counted in partial matches that events meet."""

    per_event: int = Field(description="Partial matches that each event of a transaction may meet without counting.")
    per_trace: int = Field(
        description="Further ones that a transaction may meet; beyond, the pattern is given up in it."
    )
    traces: int = Field(description="Transactions of one shard in which it may be given up; beyond, it is suspended.")
    forgiven_after: int = Field(
        description="Events of the stream in the shard after which one of them is no longer counted."
    )


class SuspensionModel(WireModel):
    """A pattern is no longer matched, as it was given up in too many transactions."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    type: Literal["pattern.suspended"] = Field(
        "pattern.suspended", description="Distinguishes suspensions from alerts and others."
    )
    id: str = Field(description="The same for the same version of the pattern, from any shard; the webhook-id.")
    stream: str
    pattern: str
    version: int = Field(description="The version that is suspended.")
    key: str = Field(description="The transaction in which it was given up last.")
    route: str | None = Field(None, description="Name of the stream's further key that `key` is of.")
    event: str = Field(description="Id of the event at which that was.")
    event_type: str
    time: str = Field(description="Time of the event.")
    shard: int = Field(description="The shard that reported it; all shards stop.")
    budget: WorkBudgetModel
    reason: str = Field(description="The reason as a sentence, with advice.")
    severity: Severity = Field(USUAL_SEVERITY, description="Severity of its pattern when it was suspended.")

    @classmethod
    def from_domain(cls, suspension: Mapping[str, Any]) -> Self:
        """The wire form of a stored suspension."""
        return cls.model_validate({name: suspension[name] for name in cls.model_fields if name in suspension})


class SuspensionCount(WireModel):
    """How often a pattern was suspended."""

    stream: str
    pattern: str
    count: int


class SuspensionList(WireModel):
    """Recent suspensions, newest first, and all that there were, counted by pattern."""

    items: list[SuspensionModel]
    counts: list[SuspensionCount]
    next: Older

    @classmethod
    def from_domain(cls, page: RecentPage, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of a page and all counters."""
        return cls(
            items=[SuspensionModel.from_domain(suspension) for suspension in page.records],
            counts=[SuspensionCount.model_validate(count) for count in counts],
            next=page.next,
        )
