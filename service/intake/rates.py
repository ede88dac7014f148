"""Token buckets by name. A bucket allows a burst, and limits the rate per second in the long run.

The buckets are in the memory of one process, because the API is one process. Well-known rate limiters count requests
per window, which allows two bursts in a row at the border of two windows. A bucket needs only a number and a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from service.latest_used import LatestUsed

_MOST_BUCKETS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The state of a bucket after a request. ``retry_after_s`` is the time until the next token, or 0 if granted."""

    is_granted: bool
    limit: int
    remaining: int
    window_s: int
    reset_s: int
    retry_after_s: int


class TokenBuckets:
    """Token buckets of one size. A bucket is full when its name is first used.

    A full bucket contains ``burst`` tokens, and ``per_s`` tokens are added per second. At most 10,000 buckets are kept.
    If there are more, the least recently used bucket is evicted, and a later request under its name gets a full bucket.
    ``now`` returns the seconds of a monotonic clock.
    """

    def __init__(self, per_s: float, burst: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._now = now
        self._lock = Lock()
        self._levels: LatestUsed[str, tuple[float, float]] = LatestUsed(_MOST_BUCKETS)

    def take(self, name: str) -> Allowance:
        with self._lock:
            now = self._now()
            level = self._level(name, now)
            is_granted = level >= 1
            if is_granted:
                level -= 1
            self._levels[name] = (level, now)
        return self._allowance(level, is_granted=is_granted)

    def look(self, name: str) -> Allowance:
        """Return whether a token is available now, and after how many seconds otherwise. No token is removed."""
        with self._lock:
            level = self._level(name, self._now())
        return self._allowance(level, is_granted=level >= 1)

    def _level(self, name: str, now: float) -> float:
        level, at = self._levels.get(name, (float(self._burst), now))
        return min(float(self._burst), level + (now - at) * self._per_s)

    def _allowance(self, level: float, *, is_granted: bool) -> Allowance:
        return Allowance(
            is_granted=is_granted,
            limit=self._burst,
            remaining=math.floor(level),
            window_s=math.ceil(self._burst / self._per_s),
            reset_s=math.ceil((self._burst - level) / self._per_s),
            retry_after_s=0 if is_granted else max(1, math.ceil((1 - level) / self._per_s)),
        )
