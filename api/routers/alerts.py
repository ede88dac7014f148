"""Alerts: list, look up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.filters import PatternFilter, StreamFilter
from api.schemas.alerts import AlertList, AlertModel
from api.services import Served

router = APIRouter(prefix="/alerts", tags=["alerts"])


@router.get("", summary="List alerts", response_model_exclude_unset=True)
def list_alerts(
    services: Served,
    stream: StreamFilter,
    pattern: PatternFilter,
    after: Annotated[str, Query(description="Cursor of an earlier page.")] = "0",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AlertList:
    """Alerts in the order in which they were found. A cursor stays good for ever, so a poller misses nothing."""
    page = services.stores.alerts.page(stream=stream, pattern=pattern, after=after, limit=limit)
    return AlertList.from_domain(page, limit)


@router.get("/{alert_id}", summary="Look up an alert", response_model_exclude_unset=True)
def get_alert(alert_id: str, services: Served) -> AlertModel:
    """One alert."""
    return AlertModel.from_domain(services.stores.alerts.get(alert_id))
