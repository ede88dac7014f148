"""Alerts as they arrive: server-sent events with rendered rows, a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from console.page import Page, templates
from forestall import ApiError, ServiceUnreachable

_EVERY_S = 0.25
_MOST_ROWS = 50
_SIGN_OF_LIFE_S = 15.0
_OPENING_S = 0.2
_END = object()


async def follow_alerts(page: Page) -> Response:
    """New alerts of the list's filters, in batches: the newest rows, and the number of all."""
    arrived: asyncio.Queue[Any] = asyncio.Queue(maxsize=10_000)
    after = page.request.headers.get("last-event-id") or page.query("after")
    reader = asyncio.create_task(_read(page, after, arrived))
    done, _ = await asyncio.wait({reader}, timeout=_OPENING_S)
    if done:
        return PlainTextResponse("the alerts cannot be followed now", 503)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(_batches(reader, arrived), media_type="text/event-stream", headers=headers)


async def _batches(reader: asyncio.Task[None], arrived: asyncio.Queue[Any]) -> AsyncIterator[bytes]:
    """A batch of rows a quarter of a second after its first alert; a comment where nothing comes."""
    try:
        yield b": alive\n\n"
        while True:
            try:
                items = [await asyncio.wait_for(arrived.get(), _SIGN_OF_LIFE_S)]
            except TimeoutError:
                yield b": alive\n\n"
                continue
            await asyncio.sleep(_EVERY_S)
            while not arrived.empty():
                items.append(arrived.get_nowait())
            if alerts := [item for item in items if item is not _END]:
                yield _batch(alerts)
            if items[-1] is _END:
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
            if key is None or alert["key"] == key:
                await arrived.put((cursor, alert))
    except (ServiceUnreachable, ApiError):
        pass  # the browser connects again, and then continues here
    finally:
        await arrived.put(_END)


def _batch(items: list[tuple[str, Any]]) -> bytes:
    newest = [alert for _, alert in reversed(items[-_MOST_ROWS:])]
    rows = templates().get_template("alert_rows.html").render(alerts=newest)
    body = orjson.dumps({"rows": rows, "count": len(items)}).decode()
    return f"id: {items[-1][0]}\nevent: rows\ndata: {body}\n\n".encode()
