"""Answers to sent events on the wire, and examples of the event forms that ``streams`` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import orjson
from pydantic import Field

from api.wire import WireModel
from service import IntakeReport

_CLOUDEVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "e1",
    "source": "/shop",
    "type": "GenerateQuote",
    "time": "2026-01-01T09:30:00Z",
    "data": {"transaction_id": "t7", "totalPrice": 250},
}
_PLAIN: dict[str, Any] = {
    "id": "e2",
    "type": "CancelOrder",
    "time": "2026-01-01T09:45:00Z",
    "data": {"transaction_id": "t7"},
}
_CALLED: dict[str, Any] = {**_PLAIN, "id": "e3", "type": "CallCustomer", "time": "2026-01-01T09:50:00Z"}
_LINES = "".join(orjson.dumps(event).decode() + "\n" for event in (_PLAIN, _CALLED))
_OBJECT = {"type": "object"}
_OBJECTS = {"type": "array", "items": _OBJECT}

BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/cloudevents+json": {"schema": _OBJECT, "example": _CLOUDEVENT},
        "application/cloudevents-batch+json": {"schema": _OBJECTS, "example": [_CLOUDEVENT]},
        "application/json": {"schema": {"oneOf": [_OBJECT, _OBJECTS]}, "example": [_PLAIN]},
        "application/x-ndjson": {"schema": {"type": "string"}, "example": _LINES},
    },
}
HEADERS: list[dict[str, Any]] = [
    {
        "name": f"ce-{name}",
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
    }
    for name, description in (
        ("specversion", "`1.0` says that this is a CloudEvent in binary mode, whose `data` is the body."),
        ("id", "Binary mode: the event's `id`."),
        ("source", "Binary mode: its `source`."),
        ("type", "Binary mode: its `type`."),
        ("time", "Binary mode: its `time`, RFC 3339."),
        ("subject", "Binary mode: its `subject`; other attributes are sent in the same way."),
    )
]


class RejectedModel(WireModel):
    """A rejected event."""

    index: int = Field(description="Its index in the request, from 0.")
    line: int | None = Field(None, description="NDJSON only: its line, from 1.")
    code: str
    detail: str


class IntakeModel(WireModel):
    """The result for each event of a request. Accepted events are safe in the log."""

    accepted: int
    rejected: list[RejectedModel] = Field(description="Rejected events, possibly all; also under /v1/dead-letters.")
    duplicates: int = Field(
        description="Events that were dropped, as the stream had accepted them before: same `id`, and of CloudEvents "
        "same `source`."
    )

    @classmethod
    def from_domain(cls, report: IntakeReport, lines: Sequence[int] | None = None) -> Self:
        """Convert an intake report. If ``lines`` is given, rejected events have their line numbers."""
        line_members = [{} if lines is None else {"line": lines[rejection.index]} for rejection in report.rejected]
        rejected = [
            RejectedModel.copying(rejection, **line)
            for rejection, line in zip(report.rejected, line_members, strict=True)
        ]
        return cls.copying(report, rejected=rejected)
