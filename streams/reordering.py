"""The reorder buffer of one stream in one shard: events wait until no older one is expected, and leave in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.batch import EventBatch

NEVER_US = -(2**62)  # no event has been seen: before every time, with room below it


class ReorderBuffer:
    """Events that wait for older ones.

    The *newest* time is that of the newest event so far; the *watermark* is as much before it as the lateness says. An
    event is late if it is older than the watermark was just before it came. An event leaves when the watermark has
    reached its time; events of one time leave in the order in which they came. All of this is judged event by event,
    so it does not matter how they are cut into batches.

    Args:
        lateness_us: Microseconds.
    """

    def __init__(self, lateness_us: int) -> None:
        self._lateness_us = lateness_us
        self._newest_us = NEVER_US
        self._watermark_us = NEVER_US
        self._waiting = EventBatch.from_events([])

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def watermark_us(self) -> int | None:
        """Every event before it has left; None before the first event."""
        return None if self._watermark_us == NEVER_US else self._watermark_us

    def is_late(self, times_us: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which events of a batch are late, if it comes now."""
        late: NDArray[np.bool_] = times_us < self.watermarks_us(times_us)
        return late

    def watermarks_us(self, times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """The watermark just before each event of a batch, if it comes now."""
        found: NDArray[np.int64] = np.maximum(self._newest_before(times_us) - self._lateness_us, self._watermark_us)
        return found

    def lags_us(self, times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """How far behind the newest time each event of a batch is, if it comes now."""
        lags: NDArray[np.int64] = np.maximum(self._newest_before(times_us) - times_us, 0)
        return lags

    def _newest_before(self, times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.maximum.accumulate(np.concatenate([np.array([self._newest_us]), times_us]))[:-1]
        return found

    def push(self, batch: EventBatch) -> EventBatch:
        """Let events come of which none is late; returns those that leave."""
        if len(batch):
            self._newest_us = max(self._newest_us, int(batch.time_us.max()))
            self._waiting = EventBatch.joined([self._waiting, batch]) if len(self) else batch
        return self.advance(self._newest_us - self._lateness_us)

    def wait(self, lateness_us: int) -> EventBatch:
        """Wait so long from here on; returns the events that leave. The watermark does not go back."""
        self._lateness_us = lateness_us
        return self.advance(self._newest_us - lateness_us)

    def see(self, time_us: int) -> EventBatch:
        """Learn that an event of a time came elsewhere; returns the events that leave."""
        self._newest_us = max(self._newest_us, time_us)
        return self.advance(self._newest_us - self._lateness_us)

    def advance(self, watermark_us: int) -> EventBatch:
        """Learn that no event before a time will come; returns the events that leave."""
        self._watermark_us = max(self._watermark_us, watermark_us)
        times = self._waiting.time_us
        order = np.argsort(times, kind="stable")
        border = int(np.searchsorted(times[order], self._watermark_us, side="right"))
        if not border:
            return self._waiting.slice(0, 0)
        if border == len(order) and np.all(np.diff(times) >= 0):
            left, self._waiting = self._waiting, self._waiting.slice(0, 0)
            return left
        left = self._waiting.take(order[:border])
        self._waiting = self._waiting.take(np.sort(order[border:]))
        return left

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget some of the events that wait, as told by place; the times stay."""
        self._waiting = self._waiting.take(np.flatnonzero(is_kept))

    @property
    def key_hashes(self) -> NDArray[np.uint64]:
        """Hashed keys of the events that wait, by place."""
        return self._waiting.key_hashes

    def drain(self) -> EventBatch:
        """Everything that waits, in order: nothing comes any more."""
        return self.advance(max(self._watermark_us, int(self._waiting.time_us.max(initial=NEVER_US))))

    def dump(self) -> tuple[dict[str, int], bytes]:
        """Two times as a JSON object, and the events that wait as a batch in wire form."""
        return {"newest_us": self._newest_us, "watermark_us": self._watermark_us}, self._waiting.to_bytes()

    def load(self, head: dict[str, int], waiting: bytes) -> None:
        """Take what ``dump`` gave.

        Raises:
            BatchFormatError: The bytes are no batch.
        """
        self._newest_us, self._watermark_us = head["newest_us"], head["watermark_us"]
        self._waiting = EventBatch.from_bytes(waiting)
