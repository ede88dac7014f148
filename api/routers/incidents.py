"""Incidents: list, look up, acknowledge, close."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, status

from api.requests.filters import PatternFilter, StreamFilter, WantedPage
from api.requests.idempotency import IdempotentRoute
from api.schemas.incidents import IncidentList, IncidentModel, IncidentRequest, IncidentState
from api.services import Served

router = APIRouter(prefix="/incidents", tags=["incidents"], route_class=IdempotentRoute)

_ANONYMOUS = IncidentRequest()


@router.get("", summary="List incidents")
def list_incidents(
    services: Served,
    stream: StreamFilter,
    pattern: PatternFilter,
    state: Annotated[IncidentState | None, Query(description="Only incidents in this state.")] = None,
    *,
    page: WantedPage,
) -> IncidentList:
    """List the incidents of patterns with ``incident``. Open incidents are always kept."""
    filters = {**page, "stream": stream, "pattern": pattern, "state": state}
    return IncidentList.from_domain(services.stores.incidents.page(**filters))


@router.get("/{incident_id}", summary="Look up an incident")
def get_incident(incident_id: str, services: Served) -> IncidentModel:
    """Look up one incident, as of its last change."""
    return IncidentModel.from_domain(services.stores.incidents.get(incident_id))


@router.post("/{incident_id}/acknowledge", summary="Acknowledge an incident", status_code=status.HTTP_202_ACCEPTED)
def acknowledge_incident(incident_id: str, services: Served, request: IncidentRequest = _ANONYMOUS) -> IncidentModel:
    """Request that an incident is marked as seen. The answer is the incident before this change.

    The request takes effect at its position in the log, and is then delivered as ``incident.updated``. Only the first
    request counts.
    """
    return IncidentModel.from_domain(services.incidents.act(incident_id, "acknowledge", request.by))


@router.post("/{incident_id}/close", summary="Close an incident", status_code=status.HTTP_202_ACCEPTED)
def close_incident(incident_id: str, services: Served, request: IncidentRequest = _ANONYMOUS) -> IncidentModel:
    """Request that an incident is closed. The answer is the incident before this change.

    The request takes effect at its position in the log, and is then delivered as ``incident.closed``. The next alert of
    the group opens another incident.
    """
    return IncidentModel.from_domain(services.incidents.act(incident_id, "close", request.by))
