"""Timeouts: partial matches that WITHIN ended, of patterns that say EMIT TIMEOUTS."""

from __future__ import annotations

from typing import ClassVar

from service.stores.connection import PREFIX
from service.stores.results.recent import RecentStore


class TimeoutStore(RecentStore):
    """Recent timeouts, counted by what was missing."""

    key: ClassVar[str] = PREFIX + "timeouts"
    counted: ClassVar[tuple[str, ...]] = ("stream", "pattern", "missing")
