"""Corrections: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.requests.filters import OlderThan, StreamFilter, of_stream
from api.schemas.corrections import CorrectionList
from api.services import Served

router = APIRouter(prefix="/corrections", tags=["corrections"])


@router.get("", summary="List recent corrections")
def list_corrections(
    services: Served,
    stream: StreamFilter,
    after: OlderThan = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> CorrectionList:
    """Retractions of alerts that were sent early and do not hold, newest first, and counters by pattern."""
    store = services.stores.corrections
    return CorrectionList.from_domain(store.page(limit, stream=stream, after=after), store.counts(**of_stream(stream)))
