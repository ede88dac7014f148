"""The numbers of posted events, by which events of one time keep the order in which they came."""

from __future__ import annotations

from threading import Lock

from streams import Clock, EventBatch

_PER_US = 16


class Arrivals:
    """Numbers batches in the order in which a process takes them; the clock orders those of several processes.

    Args:
        clock: The wall clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._next = 0

    def number(self, batch: EventBatch) -> EventBatch:
        """The batch with larger numbers than those before, whatever the clock does."""
        with self._lock:
            first = max(self._next, self._clock.now_us() * _PER_US)
            self._next = first + len(batch)
        return batch.numbered(first)
