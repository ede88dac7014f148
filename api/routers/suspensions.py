"""Suspensions: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.requests.filters import OlderThan, StreamFilter, of_stream
from api.schemas.suspensions import SuspensionList
from api.services import Served

router = APIRouter(prefix="/suspensions", tags=["suspensions"])


@router.get("", summary="List recent suspensions")
def list_suspensions(
    services: Served,
    stream: StreamFilter,
    after: OlderThan = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SuspensionList:
    """Patterns that were suspended as they cost too much work, newest first, and counters by pattern."""
    store = services.stores.suspensions
    return SuspensionList.from_domain(store.page(limit, stream=stream, after=after), store.counts(**of_stream(stream)))
