"""Alerts on the wire; the same form goes to webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from api.wire import WireModel
from service.stores import USUAL_SEVERITY, AlertPage, Severity

EXAMPLE: dict[str, Any] = {
    "type": "alert",
    "id": "5d41402abc4b2a76b9719d911017c592",
    "stream": "orders",
    "pattern": "expensive_cancelled",
    "version": 1,
    "key": "t7",
    "start": "2026-01-01T09:30:00Z",
    "end": "2026-01-01T09:45:00Z",
    "detected_at": "2026-01-01T09:45:00Z",
    "bindings": {"q": ["e1"], "c": ["e2"]},
    "returns": {},
    "why": "e1 is GenerateQuote q [totalPrice > 200]; e2 is CancelOrder c",
    "severity": "high",
}


class AlertModel(WireModel):
    """A match that was found."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    type: Literal["alert"] = Field("alert", description="Tells alerts from corrections and deviations.")
    id: str = Field(description="The same for the same match, however often it is found; the webhook-id.")
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    route: str | None = Field(
        None, description="Name of the stream's further key that `key` is of; null for its correlation key."
    )
    start: str
    end: str
    detected_at: str = Field(
        description="When its last condition was decided; later than end if something must not follow."
    )
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    returns: dict[str, bool | int | float | str | None] = Field({}, description="Values of the columns of RETURN.")
    why: str
    decided_by: Literal["constraint", "window", "trace_end"] | None = Field(
        None,
        description="Where something must not follow: what decided it. 'constraint': nothing of the kind can come any "
        "more, so that the alert is early.",
    )
    severity: Severity = Field(USUAL_SEVERITY, description="What its pattern said when it was found.")
    deviating: bool = Field(False, description="The transaction had broken a constraint before.")
    would_be_lost: bool = Field(False, description="With 'prune: shadow': pruning would have lost this alert.")

    @classmethod
    def from_domain(cls, alert: Mapping[str, Any]) -> Self:
        """The wire form of a stored alert."""
        return cls.model_validate({name: alert[name] for name in cls.model_fields if name in alert})


class AlertList(WireModel):
    """A page of alerts, oldest first."""

    items: list[AlertModel]
    next: str | None = Field(description="Send as 'after' for the next page; null when this is the last for now.")
    after: str = Field(description="Cursor behind the last item; send it later to see what is new.")

    @classmethod
    def from_domain(cls, page: AlertPage, limit: int) -> Self:
        """The wire form of a page of at most ``limit`` alerts."""
        is_full = len(page.alerts) == limit
        return cls(
            items=[AlertModel.from_domain(alert) for alert in page.alerts],
            next=page.after if is_full else None,
            after=page.after,
        )
