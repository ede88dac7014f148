"""Alerts on the wire. Webhooks deliver the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from api.schemas.results import ResultList, Route, Row
from api.wire import PageModel, Time, WireModel
from service import USUAL_SEVERITY, Acknowledgement, Note, Severity

By = Annotated[str, Field(min_length=1, max_length=200)]


class NewAcknowledgement(WireModel):
    """The acknowledgement of an alert, as sent by a client."""

    by: By | None = Field(None, description="Name of the person; stored unchanged.")


class AcknowledgementModel(WireModel):
    """The acknowledgement of an alert: who acknowledged it, and when."""

    at: Time = Field(description="When it was acknowledged first.")
    by: str | None = Field(description="Who acknowledged it, as stated by the client.")


class NewNote(WireModel):
    """A note to be added to an alert."""

    text: str = Field(min_length=1, max_length=4_000)
    by: By | None = Field(None, description="Name of the author; stored unchanged.")


class NoteModel(WireModel):
    """A note on an alert."""

    id: str
    at: Time = Field(description="When it was written.")
    text: str
    by: str | None = Field(description="The author, as stated by the client.")


class AlertModel(WireModel):
    """An alert: a match of a registered pattern."""

    type: Literal["alert"] = Field("alert", description="Distinguishes alerts from other results.")
    id: str = Field(description="Id of the match, the same each time it is found; the webhook-id.")
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    route: Route = None
    row: Row = None
    start: Time
    end: Time
    detected_at: Time = Field(
        description="When its last condition was decided; later than `end` if an event must not follow."
    )
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    returns: dict[str, bool | int | float | str | None] = Field({}, description="Values of the columns of RETURN.")
    why: str
    decided_by: Literal["constraint", "window", "trace_end"] | None = Field(
        None,
        description="What decided a NOT at the end of the pattern. 'constraint': the forbidden event can no "
        "longer come, so the alert is early.",
    )
    severity: Severity = Field(USUAL_SEVERITY, description="Severity of its pattern when it was found.")
    deviating: bool = Field(False, description="Whether the transaction had broken a constraint before.")
    would_be_lost: bool = Field(False, description="With 'prune: shadow': pruning would have lost this alert.")
    incident: str | None = Field(None, description="Id of its incident, if its pattern has 'incident'.")


class SuppressedAlertModel(AlertModel):
    """An alert that an earlier alert of its group suppresses."""

    type: Literal["alert.suppressed"] = Field(  # type: ignore[assignment] # of the same member
        "alert.suppressed", description="Distinguishes suppressed alerts from alerts."
    )
    suppressed_by: str = Field(description="Id of the last alert of the group that was not suppressed.")
    incident_alerts: int | None = Field(None, description="The number of alerts of its incident so far.")


class SuppressedAlertCount(WireModel):
    """The number of suppressed alerts of a pattern."""

    stream: str
    pattern: str
    count: int


class SuppressedAlertList(ResultList[SuppressedAlertModel, SuppressedAlertCount]):
    """Recent suppressed alerts, newest first, and the total number by pattern."""


class ListedAlert(AlertModel):
    """An alert in a list."""

    created_at: Time | None = Field(
        None, description="When the service found it, by its clock; null in alerts of earlier releases."
    )
    acknowledged: AcknowledgementModel | None = Field(None, description="Present only if it was acknowledged.")

    @classmethod
    def from_domain(cls, alert: Mapping[str, Any]) -> Self:
        """Convert an alert of a list. The result has ``acknowledged`` only if the alert was acknowledged."""
        mark = alert.get("acknowledged")
        return cls.copying(alert, **({} if mark is None else {"acknowledged": AcknowledgementModel.copying(mark)}))


class AlertDetail(ListedAlert):
    """An alert, with its notes."""

    notes: list[NoteModel] = Field([], description="Oldest first; present only if there are notes.")

    @classmethod
    def with_marks(cls, alert: Mapping[str, Any], mark: Acknowledgement | None, notes: Sequence[Note]) -> Self:
        marks = {"acknowledged": mark, "notes": notes}
        return cls.copying(alert, **{name: mark_or_notes for name, mark_or_notes in marks.items() if mark_or_notes})


class AlertList(PageModel[ListedAlert]):
    """A page of alerts."""
