"""Pages that share a feed of alerts get each alert."""

from __future__ import annotations

import asyncio
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from console.page import Page
from console.views import live
from forestall import ServiceUnreachable

ALERT = {"detected_at": "2026-01-01T00:00:00.000000Z", "severity": "high", "pattern": "p", "stream": "s", "why": ""}


class HandApi:
    """Alerts of an API that a test appends to; their cursors are their number."""

    def __init__(self) -> None:
        self.feeds: dict[Any, Any] = {}
        self.alerts: list[dict[str, Any]] = []
        self.is_down = False
        self._numbers = count()

    def append(self) -> None:
        number = next(self._numbers)
        self.alerts.append({**ALERT, "id": f"a{number}", "key": f"k{number}"})

    async def get(self, _path: str, *, after: str = "0", **_: object) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self.is_down:
            raise ServiceUnreachable("away")
        return {"items": self.alerts[int(after) :][::-1], "next": None, "after": str(len(self.alerts))}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(live, "_QUIET_S", 0.001)
    monkeypatch.setattr(live, "_BUSY_S", 0.001)


async def followed(api, *, after="0"):
    """The server-sent events of a page that follows all alerts."""
    request = SimpleNamespace(headers={}, query_params={})
    page = SimpleNamespace(request=request, api=api, query=lambda name: after if name == "after" else None)
    return await live.follow_alerts(cast(Page, page))


def ids_in(event: bytes) -> list[str]:
    data = next((line for line in event.decode().splitlines() if line.startswith("data: ")), None)
    rows = "" if data is None else orjson.loads(data.removeprefix("data: "))["rows"]
    return [part.partition('"')[0] for part in rows.split('data-id="')[1:]]


async def read_until(events, wanted):
    """Reads events until an alert has come; returns the ids of all."""
    found: list[str] = []
    async with asyncio.timeout(60):
        while wanted not in found:
            found += ids_in(await anext(events))
    return found


def test_an_alert_between_the_first_answer_and_the_stream_is_not_lost():
    async def run():
        api = HandApi()
        first = (await followed(api)).body_iterator
        await anext(first)
        second = (await followed(api)).body_iterator
        api.append()
        await read_until(first, "a0")  # the shared feed is past the alert now
        found = await read_until(second, "a0")
        api.append()
        found += await read_until(second, "a1")
        await first.aclose()
        await second.aclose()
        return found, api.feeds

    found, feeds = asyncio.run(run())
    assert set(found) == {"a0", "a1"}
    assert feeds == {}


def test_a_failed_feed_is_forgotten():
    async def run():
        api = HandApi()
        events = (await followed(api)).body_iterator
        await anext(events)
        api.is_down = True
        assert (await followed(api)).status_code == 503
        async with asyncio.timeout(60):
            rest = [event async for event in events]
        return rest, api.feeds

    rest, feeds = asyncio.run(run())
    assert [ids_in(event) for event in rest] == []
    assert feeds == {}
