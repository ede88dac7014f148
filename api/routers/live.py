"""Alerts as they are found, by server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.requests.filters import PatternFilter, StreamFilter
from api.services import Served
from api.stopping import stop_sign
from service import AlertFilter

router = APIRouter(prefix="/alerts", tags=["alerts"])

RETRY_MS = 2_000


async def seated(services: Served) -> AsyncIterator[None]:
    """Count the caller as a listener until the answer ends.

    Raises:
        TooManyListeners: The maximum number of clients listen already.
    """
    with services.live.seat():
        yield


def first_cursor(
    services: Served,
    last_event_id: Annotated[
        str | None, Header(description="The last `id` that was received; takes precedence over `after`.")
    ] = None,
    after: Annotated[
        str | None, Query(description="Start after this cursor of a list; `0`: with the oldest kept alert.")
    ] = None,
) -> str:
    """The cursor after which a listener begins: the cursor in its request, or the end of the list.

    Raises:
        InvalidCursor: The text is not a cursor.
    """
    cursor = last_event_id or after
    if cursor is None:
        return services.stores.alerts.newest()
    services.stores.alerts.page(after=cursor, limit=1)
    return cursor


@router.get(
    "/live",
    summary="Follow alerts",
    response_class=EventSourceResponse,
    dependencies=[Depends(seated)],
)
async def follow_alerts(
    services: Served,
    stream: StreamFilter,
    pattern: PatternFilter,
    after: Annotated[str, Depends(first_cursor)],
    is_stopping: Annotated[Callable[[], bool], Depends(stop_sign)],
) -> AsyncIterable[ServerSentEvent]:
    """Each alert as one event `alert`, in the form of `GET /v1/alerts`, soon after it is found, without end.

    The `id` of an event is its alert's cursor: a client that reconnects with it as `Last-Event-ID`, as browsers do
    automatically, resumes exactly there. Without one only new alerts are sent. The first event has only an `id`.
    A comment is sent every 15 seconds when there are no alerts. The answer ends when the service stops.
    """
    yield ServerSentEvent(id=after, retry=RETRY_MS)
    wanted = AlertFilter(stream=stream, pattern=pattern)
    async for cursor, alert in services.live.follow(wanted, after, is_stopping):
        shown = {name: value for name, value in alert.items() if name != "acknowledged"}
        yield ServerSentEvent(id=cursor, event="alert", raw_data=orjson.dumps(shown).decode())
