"""Deviations: events that break the constraint set of their stream."""

from __future__ import annotations

from typing import ClassVar

from service.stores.connection import PREFIX
from service.stores.deliveries.webhooks import DeliveredKind
from service.stores.results.recent import RecentStore


class DeviationStore(RecentStore):
    """Recent deviations, counted by event type and kind."""

    key: ClassVar[str] = PREFIX + "deviations"
    counted: ClassVar[tuple[str, ...]] = ("stream", "event_type", "kind")
    delivered: ClassVar[DeliveredKind | None] = "deviation"
