"""Live lists: each listener gets every new alert, other result or event soon after it was written, with a cursor.

The stores are polled, so any process may serve listeners, and a listener that reconnects with its cursor
misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from service.errors import StoreUnavailable, TooManyListeners
from service.stores import Page

_POLL_S = 0.5
_PAGE_ITEMS = 100

Pages: TypeAlias = Callable[[str, int], Page]
"""Reads the page after a cursor, with at most a number of items."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that a listener missed; ``trimmed_us`` is the time at which the oldest kept event was appended."""

    trimmed_us: int


class LiveLists:
    """Lets at most ``most`` listeners follow lists, which are polled on one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._listeners = 0

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

    async def follow(self, pages: Pages, after: str, is_over: Callable[[], bool]) -> AsyncIterator[tuple[str, Any]]:
        """Yield cursor and item for all items after a cursor, and for each new one.

        Where events were removed, yields a ``Gap`` with the cursor before the gap. Ends when ``is_over``, called before
        each poll, returns True, or when Redis does not answer; the listener then reconnects with its last cursor.
        """
        reported_us = None
        while not is_over():
            try:
                page = await asyncio.to_thread(pages, after, _PAGE_ITEMS)
            except StoreUnavailable:
                return
            if page.trimmed_us is not None and page.trimmed_us != reported_us:
                reported_us = page.trimmed_us
                yield after, Gap(reported_us)
            for entry in zip(page.cursors, page.items, strict=True):
                yield entry
            after = page.after
            if not page.has_more:
                await asyncio.sleep(_POLL_S)
