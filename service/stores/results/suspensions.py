"""Suspensions: patterns that are matched no more, as they were given up in too many traces."""

from __future__ import annotations

from typing import ClassVar

from service.stores.connection import PREFIX
from service.stores.deliveries.webhooks import DeliveredKind
from service.stores.results.recent import RecentStore


class SuspensionStore(RecentStore):
    """Recent suspensions, counted by pattern."""

    key: ClassVar[str] = PREFIX + "suspensions"
    counted: ClassVar[tuple[str, ...]] = ("stream", "pattern")
    delivered: ClassVar[DeliveredKind | None] = "pattern.suspended"
