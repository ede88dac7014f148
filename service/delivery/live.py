"""Alerts as they are found: each listener gets each one soon after it was written, with a cursor.

The alert log is asked again and again, so any process may serve listeners, and one that comes back with its cursor
misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from service.errors import StoreUnavailable, TooManyListeners
from service.stores import AlertFilter, AlertStore

_POLL_S = 0.5
_PAGE_ALERTS = 100


class LiveAlerts:
    """Lets listeners follow the alert log; belongs to one event loop.

    Args:
        alerts: The log.
        most: So many may listen at the same time.
        poll_s: How often the log is asked.
    """

    def __init__(self, alerts: AlertStore, most: int, *, poll_s: float = _POLL_S) -> None:
        self._alerts = alerts
        self._most = most
        self._poll_s = poll_s
        self._listeners = 0

    @property
    def listeners(self) -> int:
        """How many listen."""
        return self._listeners

    @contextmanager
    def seat(self) -> Iterator[None]:
        """Count as a listener while the block runs.

        Raises:
            TooManyListeners: As many listen as may.
        """
        if self._listeners >= self._most:
            raise TooManyListeners(
                f"{self._most} clients already follow alerts, the maximum (FORESTALL_LIMITS__LIVE_LISTENERS); try "
                f"again later, or read pages of GET /v1/alerts",
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
        """Cursor and alert of all that are behind a cursor, and of each one that comes.

        Ends when Redis does not answer; a listener comes back with its last cursor then.

        Args:
            wanted: Which of them.
            after: The cursor.
            is_over: Asked before each look; ends it.
        """
        while not is_over():
            try:
                page = await asyncio.to_thread(self._alerts.page, wanted, after=after, limit=_PAGE_ALERTS)
            except StoreUnavailable:
                return
            for cursor, alert in zip(page.cursors, page.alerts, strict=True):
                yield cursor, alert
            after = page.after
            if not page.has_more:
                await asyncio.sleep(self._poll_s)
