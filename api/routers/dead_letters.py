"""Dead letters: recent ones, and counters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.filters import OlderThan, StreamFilter, of_stream
from api.schemas.dead_letters import DeadLetterList
from api.services import Served

router = APIRouter(prefix="/dead-letters", tags=["dead-letters"])


@router.get("", summary="List recent dead letters")
def list_dead_letters(
    services: Served,
    stream: StreamFilter,
    after: OlderThan = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DeadLetterList:
    """Events and log entries that could not be taken, newest first, and counters by reason."""
    store = services.stores.dead_letters
    return DeadLetterList.from_domain(store.page(limit, stream=stream, after=after), store.counts(**of_stream(stream)))
