"""Alerts as they arrive: server-sent events with rendered rows, a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from console.errors import ApiGone, ApiRefused
from console.page import Page, templates

_EVERY_S = 0.25
_MOST_ROWS = 50
_SIGN_OF_LIFE_S = 15.0
_END = object()


async def follow_alerts(page: Page) -> Response:
    """New alerts of the list's filters, in batches: the newest rows, and the number of all."""
    after = page.request.headers.get("last-event-id") or page.query("after")
    events = _batches(page, after)
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _batches(page: Page, after: str | None) -> AsyncIterator[bytes]:
    """A batch of rows a quarter of a second after its first alert; a comment where nothing comes."""
    arrived: asyncio.Queue[Any] = asyncio.Queue(maxsize=10_000)
    reader = asyncio.create_task(_read(page, after, arrived))
    try:
        while True:
            try:
                first = await asyncio.wait_for(arrived.get(), _SIGN_OF_LIFE_S)
            except TimeoutError:
                yield b": alive\n\n"
                continue
            if first is _END:
                return
            if first[1] is None:
                yield f"id: {first[0]}\nevent: connected\ndata: 1\n\n".encode()
                continue
            await asyncio.sleep(_EVERY_S)
            items = [first]
            while not arrived.empty():
                items.append(arrived.get_nowait())
            ended = items[-1] is _END
            yield _batch([item for item in items if item is not _END])
            if ended:
                return
    finally:
        reader.cancel()
        with suppress(asyncio.CancelledError):
            await reader


async def _read(page: Page, after: str | None, arrived: asyncio.Queue[Any]) -> None:
    """Put each alert with its cursor into a queue, until the API ends the connection."""
    wanted = {"stream": page.query("stream"), "pattern": page.query("pattern")}
    key = page.query("key")
    try:
        async for cursor, alert in page.api.follow("/alerts/live", after, **wanted):
            if alert is None or key is None or alert["key"] == key:
                await arrived.put((cursor, alert))
    except (ApiGone, ApiRefused):
        pass  # the browser connects again, and then continues here
    finally:
        await arrived.put(_END)


def _batch(items: list[tuple[str, Any]]) -> bytes:
    newest = [alert for _, alert in reversed(items[-_MOST_ROWS:])]
    rows = templates().get_template("alert_rows.html").render(alerts=newest)
    body = orjson.dumps({"rows": rows, "count": len(items)}).decode()
    return f"id: {items[-1][0]}\nevent: rows\ndata: {body}\n\n".encode()
