"""The numbers of posted events, by which events with equal times keep the order of their arrival."""

from __future__ import annotations

from threading import Lock

from streams import Clock, EventBatch

_PER_US = 16


class Arrivals:
    """Numbers batches in the order in which a process takes them; the clock orders the batches of several processes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._next = 0

    def number(self, batch: EventBatch) -> EventBatch:
        """The batch with numbers above all earlier ones, even if the clock is set back."""
        with self._lock:
            first = max(self._next, self._clock.now_us() * _PER_US)
            self._next = first + len(batch)
        return batch.numbered(first)
