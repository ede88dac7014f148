"""The seam to the wall clock: code that needs the present time is handed a clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the present."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000
