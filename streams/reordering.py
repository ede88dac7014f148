"""The reorder buffer of a stream in a shard. Events wait until no older one is expected, and leave sorted by time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.batch import EventBatch

NEVER_US = -(2**62)  # no event yet; below every valid time


class ReorderBuffer:
    """A buffer that sorts the events of a stream by time: an event waits until no older events are expected.

    The *newest* time is that of the newest event so far. The *watermark* is the newest time less the lateness (the
    bound of out-of-orderness). An event is late if, when it arrives, it is older than the watermark. An event is
    released when the watermark has reached its time. Events of equal time are released in the order of arrival. These
    rules apply event by event, so batch boundaries have no effect.
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
        """The watermark, or None before the first event. All events older than the watermark have been released."""
        return None if self._watermark_us == NEVER_US else self._watermark_us

    def is_late(self, times_us: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of events that would be late if a batch with these times arrived now."""
        late: NDArray[np.bool_] = times_us < self.watermarks_us(times_us)
        return late

    def watermarks_us(self, times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the watermark just before each event of a batch with these times, if the batch arrived now."""
        watermarks: NDArray[np.int64] = np.maximum(
            self._newest_before(times_us) - self._lateness_us, self._watermark_us
        )
        return watermarks

    def lags_us(self, times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each event of a batch with these times how much older it is than the newest event before it."""
        lags: NDArray[np.int64] = np.maximum(self._newest_before(times_us) - times_us, 0)
        return lags

    def _newest_before(self, times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        newest: NDArray[np.int64] = np.maximum.accumulate(np.concatenate([np.array([self._newest_us]), times_us]))[:-1]
        return newest

    def push(self, batch: EventBatch) -> EventBatch:
        """Add a batch without late events. Return the events that are released because the watermark has risen."""
        if len(batch):
            self._newest_us = max(self._newest_us, int(batch.time_us.max()))
            self._waiting = EventBatch.joined([self._waiting, batch]) if len(self) else batch
        return self.advance(self._newest_us - self._lateness_us)

    def set_lateness(self, lateness_us: int) -> EventBatch:
        """Change the lateness. The watermark may rise, but does not fall. Return the events that are released."""
        self._lateness_us = lateness_us
        return self.advance(self._newest_us - lateness_us)

    def note_time(self, time_us: int) -> EventBatch:
        """Raise the newest time to the time of an event that is not buffered. Return the events that are released."""
        self._newest_us = max(self._newest_us, time_us)
        return self.advance(self._newest_us - self._lateness_us)

    def advance(self, watermark_us: int) -> EventBatch:
        """Raise the watermark, because no older event will arrive. Return the events that are released."""
        self._watermark_us = max(self._watermark_us, watermark_us)
        times = self._waiting.time_us
        order = np.argsort(times, kind="stable")
        border = int(np.searchsorted(times[order], self._watermark_us, side="right"))
        if not border:
            return self._waiting.slice(0, 0)
        if border == len(order) and np.all(np.diff(times) >= 0):
            released, self._waiting = self._waiting, self._waiting.slice(0, 0)
            return released
        released = self._waiting.take(order[:border])
        self._waiting = self._waiting.take(np.sort(order[border:]))
        return released

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Keep only the waiting events whose flag is set. The watermark and the newest time do not change."""
        self._waiting = self._waiting.take(np.flatnonzero(is_kept))

    @property
    def key_hashes(self) -> NDArray[np.uint64]:
        """Key hashes of the waiting events, in the order of the buffer."""
        return self._waiting.key_hashes

    def drain(self) -> EventBatch:
        """Release all waiting events in order, because no more will arrive. The watermark rises to the newest time."""
        return self.advance(self._newest_us)

    def dump(self) -> tuple[dict[str, int], bytes]:
        """Return the state: newest time and watermark as a JSON object, and the waiting events in wire form."""
        return {"newest_us": self._newest_us, "watermark_us": self._watermark_us}, self._waiting.to_bytes()

    def load(self, head: dict[str, int], waiting: bytes) -> None:
        """Restore the state that ``dump`` returned. Raises ``BatchFormatError`` if the bytes are not a batch."""
        self._newest_us, self._watermark_us = head["newest_us"], head["watermark_us"]
        self._waiting = EventBatch.from_bytes(waiting)
