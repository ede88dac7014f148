"""Alerts as they arrive, which pages receive at most once a second as server-sent events.

Pages with the same filters and key share one feed. So twenty pages ask the API as often as one page, and never for more
alerts than a page shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import orjson
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from console.calls import Api
from console.page import Page, templates
from forestall import ApiError, ServiceUnreachable, UnexpectedAnswer

FILTERS: Final = ("stream", "pattern", "key", "since")
_QUIET_S: Final = 0.5
_BUSY_S: Final = 1.0  # pause after a batch, as people cannot read many new rows a second
_MOST_ROWS: Final = 50
_SIGN_OF_LIFE_S: Final = 15.0
_FAILURES: Final = (ApiError, ServiceUnreachable, UnexpectedAnswer)


class Feed:
    """Polls the API for new alerts on behalf of all pages with the same filters, until the last page leaves."""

    def __init__(self, api: Api, filters: dict[str, Any]) -> None:
        self._api = api
        self._wanted = filters
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, api: Api, filters: dict[str, Any]) -> Feed:
        """Return the feed that pages with these filters share, or a new feed."""
        feed: Feed | None = api.feeds.get(tuple(filters.values()))
        return feed or cls(api, filters)

    @property
    def is_running(self) -> bool:
        """Whether the feed polls the API."""
        return self._task is not None

    def join(self, cursor: str) -> asyncio.Queue[bytes | None]:
        """Add a page. Return its queue of server-sent events. None in the queue means that the API has failed."""
        self._api.feeds[tuple(self._wanted.values())] = self
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._queues.add(queue)
        if self._task is None:
            self._task = asyncio.create_task(self._run(cursor))
        return queue

    def leave(self, queue: asyncio.Queue[bytes | None]) -> None:
        """Remove a page from the feed. Polling stops with the last page."""
        self._queues.discard(queue)
        if self._queues:
            return
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._api.feeds.get(name := tuple(self._wanted.values())) is self:
            del self._api.feeds[name]

    async def newer(self, cursor: str) -> tuple[str, bytes | None]:
        """Return the newest cursor, and the newest alerts after ``cursor`` as a server-sent event.

        Without new alerts, the event is None.
        """
        listed = await self._api.get("/alerts", **self._wanted, after=cursor, limit=_MOST_ROWS)
        is_cut = listed["next"] is not None
        items = list(reversed(listed["items"]))
        if is_cut:
            listed = await self._api.get("/alerts", **self._wanted, limit=_MOST_ROWS)
            items = listed["items"]
        following = listed["next"] if is_cut else None
        return listed["after"], _event(items, listed["after"], following, is_cut=is_cut) if items else None

    async def _run(self, cursor: str) -> None:
        event: bytes | None = None
        try:
            while True:
                await asyncio.sleep(_BUSY_S if event else _QUIET_S)
                cursor, event = await self.newer(cursor)
                if event is not None:
                    self._send(event)
        except _FAILURES:
            self._task = None
            self._send(None)  # browsers reconnect and resume at their cursor

    def _send(self, event: bytes | None) -> None:
        for queue in self._queues:
            queue.put_nowait(event)


def _event(items: list[Any], cursor: str, following: str | None, *, is_cut: bool) -> bytes:
    """Encode rows as an event. ``following`` is the cursor of the list after the rows, if they leave out new alerts."""
    rows = templates().get_template("alert_rows.html").render(alerts=items)
    body = orjson.dumps({"rows": rows, "count": len(items), "more": is_cut, "next": following}).decode()
    return f"id: {cursor}\nevent: rows\ndata: {body}\n\n".encode()


async def follow_alerts(page: Page) -> Response:
    """Stream new alerts that match the list's filters. Each event has the newest rows, and the number of alerts."""
    cursor = page.request.headers.get("last-event-id") or page.query("after") or "0"
    filters: dict[str, Any] = {name: page.query(name) for name in FILTERS}
    try:
        cursor, missed = await Feed.of(page.api, filters).newer(cursor)
    except _FAILURES:
        return PlainTextResponse("the alerts cannot be followed now", 503)
    headers = {"X-Accel-Buffering": "no"}
    events = _events(page.api, filters, cursor, missed)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(api: Api, filters: dict[str, Any], cursor: str, missed: bytes | None) -> AsyncIterator[bytes]:
    """Yield a page's server-sent events: missed alerts, new alerts, and comments that keep the connection open.

    A running feed may already be past ``cursor``. Therefore the alerts after ``cursor`` are read again once the page
    has joined the feed. If an alert arrives twice, the page shows it once.
    """
    feed = Feed.of(api, filters)
    is_shared, queue = feed.is_running, feed.join(cursor)
    try:
        yield missed or b": alive\n\n"
        if is_shared:
            with suppress(*_FAILURES):  # then the feed fails too, and the browser resumes at its cursor
                if (between := (await feed.newer(cursor))[1]) is not None:
                    yield between
        while True:
            event: bytes | None = b": alive\n\n"
            with suppress(TimeoutError):
                event = await asyncio.wait_for(queue.get(), _SIGN_OF_LIFE_S)
            if event is None:
                return
            yield event
    finally:
        feed.leave(queue)
