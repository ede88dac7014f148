"""Timeouts: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.requests.filters import OlderThan, StreamFilter, of_stream
from api.schemas.timeouts import TimeoutList
from api.services import Served

router = APIRouter(prefix="/timeouts", tags=["timeouts"])


@router.get("", summary="List recent timeouts")
def list_timeouts(
    services: Served,
    stream: StreamFilter,
    after: OlderThan = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> TimeoutList:
    """Partial matches whose WITHIN has passed, of patterns with EMIT TIMEOUTS, newest first, and counters."""
    store = services.stores.timeouts
    return TimeoutList.from_domain(store.page(limit, stream=stream, after=after), store.counts(**of_stream(stream)))
