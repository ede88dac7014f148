"""Corrections: events that an early alert said could not come."""

from __future__ import annotations

from typing import ClassVar

from service.stores.connection import PREFIX
from service.stores.deliveries.webhooks import DeliveredKind
from service.stores.results.recent import RecentStore


class CorrectionStore(RecentStore):
    """Recent corrections, counted by pattern."""

    key: ClassVar[str] = PREFIX + "corrections"
    counted: ClassVar[tuple[str, ...]] = ("stream", "pattern")
    delivered: ClassVar[DeliveredKind | None] = "correction"
