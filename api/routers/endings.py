"""Early terminations: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.requests.filters import OlderThan, StreamFilter, of_stream
from api.schemas.endings import EndingList, EndingSummaries
from api.services import Served

router = APIRouter(prefix="/endings", tags=["endings"])


@router.get("", summary="List recent early terminations")
def list_endings(
    services: Served,
    stream: StreamFilter,
    after: OlderThan = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> EndingList:
    """The first event after which a pattern can no longer match in a transaction, newest first, and counters by reason.

    A transaction's own end event is among them, with the form ``end``.
    """
    store = services.stores.endings
    return EndingList.from_domain(store.page(limit, stream=stream, after=after), store.counts(**of_stream(stream)))


@router.get("/summary", summary="Count early terminations by pattern and reason")
def summarize_endings(services: Served, stream: StreamFilter) -> EndingSummaries:
    """In how many transactions each pattern could no longer match, and why, since the service began."""
    return EndingSummaries.from_domain(services.stores.endings.counts(**of_stream(stream)))
