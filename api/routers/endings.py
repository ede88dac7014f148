"""Early endings: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.schemas.endings import EndingList
from api.services import Served

router = APIRouter(prefix="/endings", tags=["endings"])


@router.get("", summary="List recent early endings")
def list_endings(
    services: Served,
    stream: Annotated[str | None, Query(description="Only those of this stream; counters are of all.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> EndingList:
    """Runs that ended before their transaction did, newest first, and counters by reason."""
    store = services.stores.endings
    return EndingList.from_domain(store.recent(limit, stream=stream), store.counts())
