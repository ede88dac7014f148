"""Alerts: list, look up, acknowledge, add notes."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, status

from api.requests.filters import PatternFilter, StreamFilter, WantedPage
from api.requests.idempotency import IdempotentRoute, once
from api.schemas.alerts import AcknowledgementModel, AlertDetail, AlertList, NewAcknowledgement, NewNote, NoteModel
from api.services import Served
from api.wire import Moment
from service import Acknowledgement, AlertFilter, Note
from streams import parse_time

router = APIRouter(prefix="/alerts", tags=["alerts"], route_class=IdempotentRoute)

_ANONYMOUS = NewAcknowledgement()


def wanted_times(
    since: Annotated[Moment | None, Query(description="Only alerts with `detected_at` at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Only alerts with `detected_at` before this time.")] = None,
    created_since: Annotated[
        Moment | None, Query(description="Only alerts with `created_at` at this time or later.")
    ] = None,
    created_until: Annotated[
        Moment | None, Query(description="Only alerts with `created_at` before this time.")
    ] = None,
) -> dict[str, int | None]:
    """Return the time ranges of a list of alerts: by ``detected_at`` (event time), and by ``created_at``."""
    times = {"since": since, "until": until, "created_since": created_since, "created_until": created_until}
    return {f"{name}_us": None if time is None else parse_time(time) for name, time in times.items()}


def wanted_alerts(
    stream: StreamFilter,
    pattern: PatternFilter,
    times: Annotated[dict[str, Any], Depends(wanted_times)],
    key: Annotated[str | None, Query(description="Only alerts of this transaction.")] = None,
    acknowledged: Annotated[
        bool | None, Query(description="Only acknowledged alerts, or only unacknowledged ones.")
    ] = None,
) -> AlertFilter:
    """Return the filter of a list of alerts."""
    alert_filter = AlertFilter(stream=stream, pattern=pattern, key=key, is_acknowledged=acknowledged)
    return replace(alert_filter, **times)


@router.get("", summary="List alerts", response_model_exclude_unset=True)
def list_alerts(
    services: Served,
    wanted: Annotated[AlertFilter, Depends(wanted_alerts)],
    page: WantedPage,
) -> AlertList:
    """List alerts in the order in which they were found. A cursor never expires, so a poller misses nothing.

    If alerts are selected by key, times or acknowledgement, a page examines only some thousands of alerts. It may then
    have few alerts or none, and `next` is set if more may follow.
    """
    return AlertList.from_domain(services.stores.alerts.page(wanted, **page))


@router.get("/{alert_id}", summary="Look up an alert", response_model_exclude_unset=True)
def get_alert(alert_id: str, services: Served) -> AlertDetail:
    """Look up one alert, with its notes."""
    alerts = services.stores.alerts
    (mark,) = alerts.marks.acknowledgements([alert_id])
    return AlertDetail.with_marks(alerts.get(alert_id), mark, alerts.marks.notes(alert_id))


@router.post("/{alert_id}/acknowledge", summary="Acknowledge an alert")
def acknowledge_alert(
    alert_id: str, services: Served, request: NewAcknowledgement = _ANONYMOUS
) -> AcknowledgementModel:
    """Mark an alert as seen. A repetition changes nothing: the answer names the first person and time."""
    mark = Acknowledgement(at_us=services.clock.now_us(), by=request.by)
    return AcknowledgementModel.copying(services.stores.alerts.marks.acknowledge(alert_id, mark))


@router.post(
    "/{alert_id}/notes",
    status_code=status.HTTP_201_CREATED,
    summary="Add a note to an alert",
    dependencies=[Depends(once)],
)
def add_note(alert_id: str, note: NewNote, services: Served) -> NoteModel:
    """Add a note to an alert. The answer of `GET` shows the notes, oldest first."""
    written = Note(id=f"note_{uuid.uuid4().hex}", at_us=services.clock.now_us(), text=note.text, by=note.by)
    services.stores.alerts.marks.add_note(alert_id, written)
    return NoteModel.copying(written)
