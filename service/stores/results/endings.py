"""Early terminations: which patterns ended before their trace did, and why."""

from __future__ import annotations

from typing import ClassVar

from service.stores.connection import PREFIX
from service.stores.results.recent import RecentStore


class EndingStore(RecentStore):
    """Recent early terminations, counted by what made them certain."""

    key: ClassVar[str] = PREFIX + "endings"
    counted: ClassVar[tuple[str, ...]] = ("stream", "pattern", "form", "constraints", "atom")
