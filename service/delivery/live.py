"""Live lists, from which listeners receive new alerts, events or other results soon after they are written.

The stores are polled, so that any process can serve listeners. Each item has a cursor. A listener that reconnects with
its last cursor misses no items.
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
"""Function that reads the page after a cursor, with at most the given number of items."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in a listener's events. ``trimmed_us`` is the time at which the oldest retained event was appended."""

    trimmed_us: int


class LiveLists:
    """Serves live lists to at most ``most`` listeners at the same time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._listeners = 0

    @contextmanager
    def seat(self) -> Iterator[None]:
        """Count one more listener during the ``with`` block. If there are too many, raise ``TooManyListeners``."""
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
        """Yield the items after the cursor ``after``, and then wait for new items and yield them.

        Each item is yielded in a pair with its cursor. If items were trimmed before they were read, the cursor before
        the trimmed items is yielded in a pair with a ``Gap``. Before each poll, ``is_over`` is called. If it returns
        True, or if Redis does not answer, the iteration ends.
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
