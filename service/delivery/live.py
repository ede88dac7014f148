"""Alerts and events for listeners: each listener gets every new one soon after it was written, with a cursor.

The stores are polled, so any process may serve listeners, and a listener that reconnects with its cursor
misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from service.delivery.results_feed import FeedItem, ResultsFeed
from service.errors import StoreUnavailable, TooManyListeners
from service.stores import AlertFilter, AlertStore, EventFilter, EventPages

_POLL_S = 0.5
_PAGE_ITEMS = 100


class LivePage(Protocol):
    """A page of the followed items."""

    @property
    def cursors(self) -> Sequence[str]:
        """For each item, the cursor after it."""
        ...

    @property
    def after(self) -> str:
        """Cursor after everything that was examined."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether more may follow at present."""
        ...


_Page = TypeVar("_Page", bound=LivePage)

Pages: TypeAlias = Callable[[str, int], _Page]
"""Reads the page after a cursor, with at most a number of items."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that a listener missed; ``trimmed_us`` is the time at which the oldest kept event came."""

    trimmed_us: int


class LiveAlerts:
    """Lets at most ``most`` listeners follow alerts and events, polled every ``poll_s`` seconds on one event loop."""

    def __init__(self, alerts: AlertStore, events: EventPages, most: int, *, poll_s: float = _POLL_S) -> None:
        self._alerts = alerts
        self._events = events
        self._most = most
        self._poll_s = poll_s
        self._listeners = 0

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return self._listeners

    @contextmanager
    def seat(self) -> Iterator[None]:
        """Count as a listener while the block runs; raises ``TooManyListeners`` at the maximum."""
        if self._listeners >= self._most:
            raise TooManyListeners(
                f"{self._most} clients already follow alerts or events, the maximum "
                f"(FORESTALL_LIMITS__LIVE_LISTENERS); try again later, or read pages of GET /v1/alerts or "
                f"GET /v1/streams/NAME/events",
                limit=self._most,
            )
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    async def follow(
        self, wanted: AlertFilter, after: str, is_over: Callable[[], bool]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield cursor and alert for all alerts after a cursor, and for each new one.

        Ends when ``is_over``, called before each poll, returns True, and when Redis does not answer; the listener then
        reconnects with its last cursor.
        """
        pages = self._pages(lambda cursor, limit: self._alerts.page(wanted, after=cursor, limit=limit), after, is_over)
        async for _, page in pages:
            for one in zip(page.cursors, page.items, strict=True):
                yield one

    async def follow_results(
        self, feed: ResultsFeed, after: str, is_over: Callable[[], bool]
    ) -> AsyncIterator[tuple[str, FeedItem]]:
        """As ``follow``, for results of several kinds."""
        async for _, page in self._pages(feed, after, is_over):
            for one in zip(page.cursors, page.items, strict=True):
                yield one

    async def follow_events(
        self, wanted: EventFilter, after: str, is_over: Callable[[], bool]
    ) -> AsyncIterator[tuple[str, dict[str, Any] | Gap]]:
        """As ``follow``, for events of a stream; where events were removed, yields a gap with the cursor before it."""
        shown_us = None
        async for begin, page in self._pages(lambda cursor, limit: self._events(wanted, cursor, limit), after, is_over):
            if page.trimmed_us is not None and page.trimmed_us != shown_us:
                shown_us = page.trimmed_us
                yield begin, Gap(shown_us)
            for one in zip(page.cursors, page.items, strict=True):
                yield one

    async def _pages(
        self, pages: Pages[_Page], after: str, is_over: Callable[[], bool]
    ) -> AsyncIterator[tuple[str, _Page]]:
        """Yield each page with the cursor after which it begins."""
        while not is_over():
            try:
                page = await asyncio.to_thread(pages, after, _PAGE_ITEMS)
            except StoreUnavailable:
                return
            yield after, page
            after = page.after
            if not page.has_more:
                await asyncio.sleep(self._poll_s)
