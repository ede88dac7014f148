"""Health and readiness; no key is required."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from api.errors import NotReady
from api.problems import READY_RESPONSES
from api.schemas.health import Health, Ready
from api.services import Served
from service import missing_parts

router = APIRouter(tags=["health"])


_OPEN: dict[str, Any] = {"security": []}  # no key is required


@router.get("/health", summary="Is the process up?", openapi_extra=_OPEN)
def get_health() -> Health:
    """The API process is up; the rest of the service is not checked."""
    return Health()


@router.get(
    "/ready",
    summary="Is the service ready?",
    responses=READY_RESPONSES,
    openapi_extra=_OPEN,
)
def get_ready(services: Served) -> Ready:
    """Ready when Redis answers and the pipeline has reported recently."""
    missing = missing_parts(services.stores, services.settings, services.clock)
    if missing:
        raise NotReady("; ".join(missing), missing=list(missing))
    return Ready()
