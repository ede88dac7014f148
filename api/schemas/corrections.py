"""Corrections on the wire; the same form goes to webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from api.wire import Older, WireModel
from service import USUAL_SEVERITY, RecentPage, Severity

EXAMPLE: dict[str, Any] = {
    "type": "correction",
    "id": "0cc175b9c0f1b6a831c399e269772661",
    "stream": "orders",
    "pattern": "never_invoiced",
    "version": 1,
    "key": "t7",
    "alert": "5d41402abc4b2a76b9719d911017c592",
    "bindings": {"d": ["e1"]},
    "event": "e5",
    "event_type": "Invoice",
    "time": "2026-01-01T09:45:00Z",
    # house: allow plain-words: the reason as the pipeline has stored it so far
    "reason": "Invoice must not follow, and was told to be impossible when the alert was sent",
    "severity": "high",
}


class CorrectionModel(WireModel):
    """An alert that was sent early does not hold: the transaction broke a constraint."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    type: Literal["correction"] = Field(
        "correction", description="Distinguishes corrections from alerts and deviations."
    )
    id: str = Field(description="The same for the same correction, however often it is found; the webhook-id.")
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    alert: str = Field(description="Id of the alert that does not hold.")
    bindings: dict[str, list[str]] = Field(description="Event ids by alias, as in the alert.")
    event: str = Field(description="Id of the event that the match must not have.")
    event_type: str
    time: str
    reason: str
    severity: Severity = Field(USUAL_SEVERITY, description="Severity of its pattern when it was found.")

    @classmethod
    def from_domain(cls, correction: Mapping[str, Any]) -> Self:
        """The wire form of a stored correction."""
        return cls.model_validate({name: correction[name] for name in cls.model_fields if name in correction})


class CorrectionCount(WireModel):
    """The number of retracted alerts of a pattern."""

    stream: str
    pattern: str
    count: int


class CorrectionList(WireModel):
    """Recent corrections, newest first, and the count of all by pattern."""

    items: list[CorrectionModel]
    counts: list[CorrectionCount]
    next: Older

    @classmethod
    def from_domain(cls, page: RecentPage, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of a page and all counters."""
        return cls(
            items=[CorrectionModel.from_domain(correction) for correction in page.records],
            counts=[CorrectionCount.model_validate(count) for count in counts],
            next=page.next,
        )
