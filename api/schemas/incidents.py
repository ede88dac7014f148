"""Incidents on the wire."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from api.schemas.alerts import By
from api.wire import From, PageModel, Time, WireModel
from service import Severity

IncidentState: TypeAlias = Literal["open", "acknowledged", "closed"]


class IncidentRequest(WireModel):
    """The name of the person who acknowledges or closes an incident."""

    by: By | None = Field(None, description="Name of the person; stored unchanged.")


class ActedModel(WireModel):
    """Who acknowledged an incident, and when."""

    by: str | None
    at: Time = Field(description="Time of the request.")


class ClosedByModel(WireModel):
    """The reason why an incident was closed, and who or which alert closed it."""

    how: Literal["time", "pattern", "person", "version", "deletion"] = Field(
        description="'time': no alert for 'close_after'; 'pattern': an alert of a pattern that resolves it; 'version': "
        "another version of the pattern has other groups; 'deletion': the pattern was deleted."
    )
    by: str | None = Field(None, description="The person.")
    at: Time | None = Field(None, description="Time of the request.")
    pattern: str | None = Field(None, description="The pattern that resolves it.")
    alert: str | None = Field(None, description="Id of its alert.")


class IncidentModel(WireModel):
    """An incident: the alerts of a group of a pattern, from the first alert until the incident is closed."""

    id: Annotated[str, From("incident")] = Field(
        description="Id of the incident; the member 'incident' of its messages."
    )
    stream: str
    pattern: str
    version: int
    severity: Severity = Field(description="Severity of its pattern at the last change.")
    group: dict[str, bool | int | float | str | None] = Field(description="The values that its alerts share.")
    state: IncidentState
    revision: int = Field(description="Counts its changes.")
    opened_at: Time = Field(description="Event time of its first alert.")
    updated_at: Time = Field(description="Event time of its last change; a suppressed alert changes only the counts.")
    closed_at: Time | None = Field(description="Event time at which it was closed.")
    closed_by: ClosedByModel | None
    acknowledged: ActedModel | None
    alerts: int = Field(description="Alerts so far, with suppressed ones.")
    suppressed_alerts: int
    first_alert: str = Field(description="Id of its first alert.")
    last_alert: str = Field(description="Id of its last alert that was not suppressed.")
    key: str = Field(description="The transaction of the last alert.")
    why: str = Field(description="Why the last alert was raised.")


class IncidentList(PageModel[IncidentModel]):
    """A page of incidents."""
