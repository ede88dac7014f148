"""Live alerts and other results, by server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.errors import WrongShape
from api.requests.filters import PatternFilter, StreamFilter
from api.services import Served
from api.stopping import stop_sign
from service import AlertFilter, Page, ResultsFeed
from shards import RESULT_KINDS

router = APIRouter(prefix="/alerts", tags=["alerts"])

results_router = APIRouter(prefix="/results", tags=["results"])

RETRY_MS = 2_000

_FOLLOWED = tuple(sorted(kind.name for kind in RESULT_KINDS.values() if kind.plural))
LastEventId = Annotated[
    str | None, Header(description="The last `id` that was received; takes precedence over `after`.")
]


async def seated(services: Served) -> AsyncIterator[None]:
    """Count the caller as a listener until the answer ends.

    Raises:
        TooManyListeners: The maximum number of clients is listening already.
    """
    with services.live.seat():
        yield


def wanted_feed(
    services: Served,
    stream: StreamFilter,
    kinds: Annotated[
        str, Query(description=f"Kinds of results, with commas between them: {', '.join(_FOLLOWED)}.")
    ] = "alert,correction",
) -> ResultsFeed:
    """Return the kinds and the stream that a request follows."""
    names = [kind.strip() for kind in kinds.split(",")]
    if unknown := [kind for kind in names if kind not in _FOLLOWED]:
        raise WrongShape(f"query.kinds: {unknown[0]!r} is not a kind of results; there are {', '.join(_FOLLOWED)}")
    return ResultsFeed(services.stores.alerts, services.stores.results, list(dict.fromkeys(names)), stream)


def first_cursor(
    services: Served,
    last_event_id: LastEventId = None,
    after: Annotated[
        str | None, Query(description="Start after this cursor of a list; `0`: with the oldest kept alert.")
    ] = None,
) -> str:
    """Return the cursor after which a listener starts: from the request, or by default the end of the list.

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
    """Send each new alert as a server-sent event `alert`, in the form of `GET /v1/alerts`.

    The `id` of an event is the cursor of its alert. A client that reconnects with this `id` as `Last-Event-ID`, as
    browsers do automatically, resumes exactly there. Without a cursor, only new alerts are sent. The first event has
    only an `id`. While there are no alerts, a comment is sent every 15 seconds. The answer ends when the service stops.
    """
    yield ServerSentEvent(id=after, retry=RETRY_MS)
    alert_filter = AlertFilter(stream=stream, pattern=pattern)

    def pages(cursor: str, limit: int) -> Page:
        return services.stores.alerts.page(alert_filter, after=cursor, limit=limit)

    async for cursor, alert in services.live.follow(pages, after, is_stopping):
        members = {name: value for name, value in alert.items() if name != "acknowledged"}
        yield ServerSentEvent(id=cursor, event="alert", raw_data=orjson.dumps(members).decode())


def first_cursor_of_results(
    feed: Annotated[ResultsFeed, Depends(wanted_feed)],
    last_event_id: LastEventId = None,
    after: Annotated[
        str | None, Query(description="Start after this `id` of an event; `0`: with the oldest kept results.")
    ] = None,
) -> str:
    """Return the cursor after which a listener starts: from the request, or by default the end of the lists.

    Raises:
        InvalidCursor: The text is not a cursor of these kinds.
    """
    cursor = last_event_id or after
    if cursor is None:
        return feed.newest()
    feed(cursor, 1)
    return cursor


@results_router.get(
    "/live",
    summary="Follow results",
    response_class=EventSourceResponse,
    dependencies=[Depends(seated)],
)
async def follow_results(
    services: Served,
    feed: Annotated[ResultsFeed, Depends(wanted_feed)],
    after: Annotated[str, Depends(first_cursor_of_results)],
    is_stopping: Annotated[Callable[[], bool], Depends(stop_sign)],
) -> AsyncIterable[ServerSentEvent]:
    """Send each new result as a server-sent event with the kind as its name, in the form of the kind's list.

    The `id` of an event is the cursor after the event, for the same kinds. A client that reconnects with this `id` as
    `Last-Event-ID` resumes exactly there. Without a cursor, only new results are sent. The results of one kind are sent
    in the order in which they were found. The first event has only an `id`. While there are no results, a comment is
    sent every 15 seconds.
    """
    yield ServerSentEvent(id=after, retry=RETRY_MS)
    async for cursor, (kind, result) in services.live.follow(feed, after, is_stopping):
        members = {name: value for name, value in result.items() if name != "acknowledged"}
        yield ServerSentEvent(id=cursor, event=kind, raw_data=orjson.dumps(members).decode())
