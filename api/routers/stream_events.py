"""The events of a stream: listed in pages, or followed as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from functools import partial
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.routers.live import RETRY_MS, seated
from api.schemas.streams import StreamEventList
from api.services import Served
from api.stopping import stop_sign
from service import EventFilter, Gap
from streams import format_time

router = APIRouter(prefix="/streams/{stream}/events", tags=["streams"])


def wanted_events(
    stream: str,
    services: Served,
    key: Annotated[str | None, Query(description="Only events of this transaction.")] = None,
    event_type: Annotated[str | None, Query(alias="type", description="Only events of this type.")] = None,
) -> EventFilter:
    """Return the requested filter of a stream's events.

    Raises:
        UnknownStream: The stream is not declared.
    """
    since_ms = services.stores.registry.since_ms(stream)
    return EventFilter(stream=stream, key=key, event_type=event_type, since_ms=since_ms)


Wanted = Annotated[EventFilter, Depends(wanted_events)]


def first_cursor(
    wanted: Wanted,
    services: Served,
    last_event_id: Annotated[
        str | None, Header(description="The last `id` that was received; takes precedence over `after`.")
    ] = None,
    after: Annotated[
        str | None, Query(description="Start after this cursor of a list; `0`: with the oldest kept event.")
    ] = None,
) -> str:
    """Return the cursor after which a listener starts: from the request, or by default the end of the log.

    Raises:
        InvalidCursor: The text is not a cursor.
    """
    cursor = last_event_id or after
    page = services.stores.event_pages(wanted, cursor, 1)
    return page.after if cursor is None else cursor


@router.get("", summary="List the events of a stream")
def list_events(
    wanted: Wanted,
    services: Served,
    after: Annotated[
        str | None, Query(description="Cursor of an earlier page; `0`: the oldest kept events. Default: the newest.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> StreamEventList:
    """List the events in the log, in the order of arrival. Without `after`, the page has the newest events.

    Events of derived streams are kept in one list: the newest `FORESTALL_LIMITS__RECENT_KEPT` of all these streams.

    A cursor never expires, so a poller misses no event that is still in the log. If entries after the cursor were
    trimmed, `trimmed_until` is the time of the oldest kept entry. Each page examines a bounded part of the log, which
    contains all streams. A page may therefore have few events or none, and `next` is set if more may follow.
    """
    return StreamEventList.from_domain(services.stores.event_pages(wanted, after, limit))


@router.get(
    "/live",
    summary="Follow the events of a stream",
    response_class=EventSourceResponse,
    dependencies=[Depends(seated)],
)
async def follow_events(
    services: Served,
    wanted: Wanted,
    after: Annotated[str, Depends(first_cursor)],
    is_stopping: Annotated[Callable[[], bool], Depends(stop_sign)],
) -> AsyncIterable[ServerSentEvent]:
    """Send each accepted event as a server-sent event `event`, in the form of the list.

    The `id` is the cursor after the event. A client that reconnects with this `id` as `Last-Event-ID`, as browsers do
    automatically, resumes exactly there. Without a cursor, only new events are sent. The first message has only an
    `id`. If events after the cursor are no longer kept, a server-sent event `gap` comes first:
    `{"trimmed_until": TIME}`. While there are no events, a comment is sent every 15 seconds. The answer ends
    when the service stops.
    """
    yield ServerSentEvent(id=after, retry=RETRY_MS)
    pages = partial(services.stores.event_pages, wanted)
    async for cursor, event in services.live.follow(pages, after, is_stopping):
        if isinstance(event, Gap):
            gap = {"trimmed_until": format_time(event.trimmed_us)}
            yield ServerSentEvent(id=cursor, event="gap", raw_data=orjson.dumps(gap).decode())
        else:
            yield ServerSentEvent(id=cursor, event="event", raw_data=orjson.dumps(event).decode())
