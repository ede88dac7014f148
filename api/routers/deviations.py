"""Deviations: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.requests.filters import OlderThan, StreamFilter, of_stream
from api.schemas.deviations import DeviationList
from api.services import Served

router = APIRouter(prefix="/deviations", tags=["deviations"])


@router.get("", summary="List recent deviations")
def list_deviations(
    services: Served,
    stream: StreamFilter,
    after: OlderThan = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DeviationList:
    """Events that break their stream's constraints, newest first, and counters by event type and kind."""
    store = services.stores.deviations
    return DeviationList.from_domain(store.page(limit, stream=stream, after=after), store.counts(**of_stream(stream)))
