"""Events in the order of their times, as far as the lateness of their stream allows, and what is done with later ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import orjson

from shards.entries import Entry
from shards.errors import EventLate
from shards.operators import KeyChoice, Origin, Result
from shards.results import DEAD_LETTER
from shards.rows import dead_letter_body, row_id
from streams import EARLIEST_US, LATEST_US, EventBatch, Late, ReorderBuffer, format_time

_COUNTED: Mapping[Late, str] = {
    "drop": "late_dropped",
    "dead_letter": "late_dead_lettered",
    "process": "late_processed",
}
LATE_COUNTS: tuple[str, ...] = tuple(_COUNTED.values())
"""How many late events were dropped, dead-lettered, and processed."""

_SHOWN_CHARS = 4_000

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Listener(Protocol[T_co]):
    """What events are handed to: a host, for example."""

    @property
    def newest_us(self) -> int | None:
        """How far time has come for it; None before the first event."""
        ...

    def process(self, batch: EventBatch) -> T_co:
        """Take events in, in the order of time."""
        ...

    def advance_time(self, watermark_us: int) -> T_co:
        """No event before a time comes any more."""
        ...


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event that is set aside.

    Attributes:
        event: A batch of one row.
        watermark_us: Events before it were not expected any more.
    """

    event: EventBatch
    watermark_us: int

    def results(self, origin: Origin) -> Iterator[Result]:
        """Its dead letter."""
        (late,) = self.event.to_events()
        entry = origin.entry
        error = EventLate(
            f"event {late.id!r} of {format_time(late.time_us)} came late: events before {_shown(self.watermark_us)} "
            "were not expected any more; a larger lateness of the stream waits longer, and late: process matches late "
            "events, too"
        )
        identity = row_id(DEAD_LETTER, entry.stream, entry.route, "late", late.id, late.key, late.time_us)
        shown = {"id": late.id, "type": late.type, "time": format_time(late.time_us), "key": late.key}
        text = orjson.dumps({**shown, "data": late.data}).decode()
        body = {
            **dead_letter_body(origin.shard, entry, error),
            "id": identity,
            "event": text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…",
            "watermark": _shown(self.watermark_us),
        }
        yield DEAD_LETTER, identity, body


class EventOrder(Generic[T]):
    """Events that wait for older ones, and what is done with those that are too old to be waited for.

    Every listener gets the same events in the same order, and after them the watermark.

    Args:
        lateness_us: How much older than the newest event before it an event may be.
        late: What to do with later ones.

    Attributes:
        buffer: What waits.
        counts: Late events so far, by the names of ``LATE_COUNTS``.
    """

    def __init__(self, lateness_us: int, late: Late) -> None:
        self.buffer = ReorderBuffer(lateness_us)
        self.counts = dict.fromkeys(LATE_COUNTS, 0)
        self._late = late

    def take(
        self, listeners: Collection[Listener[T]], entries: Sequence[Entry], batches: Sequence[EventBatch]
    ) -> Iterator[tuple[Entry, T | LateEvent]]:
        """Take batches in, and hand on what need not wait.

        Args:
            listeners: Get the events.
            entries: In the order of the log.
            batches: What each of them holds.
        """
        batch = EventBatch.joined(batches)
        is_late = self.buffer.is_late(batch.time_us)
        if not is_late.any():
            yield from self._released(listeners, entries[-1], self.buffer.push(batch))
            return
        rows = np.flatnonzero(is_late)
        owners = np.repeat(np.arange(len(batches)), [len(part) for part in batches])[rows].tolist()
        self.counts[_COUNTED[self._late]] += len(rows)
        if self._late == "process":
            late = zip(rows.tolist(), (entries[owner] for owner in owners), strict=True)
            yield from self._with_late(listeners, entries[-1], batch, late)
            return
        if self._late == "dead_letter":
            watermarks_us = self.buffer.watermarks_us(batch.time_us)
            for row, owner in zip(rows.tolist(), owners, strict=True):
                yield entries[owner], LateEvent(batch.slice(row, 1), int(watermarks_us[row]))
        yield from self._released(listeners, entries[-1], self.buffer.push(batch.take(np.flatnonzero(~is_late))))

    def see(self, listeners: Collection[Listener[T]], entry: Entry, time_us: int) -> Iterator[tuple[Entry, T]]:
        """An event of a time was seen elsewhere, or would have been by now."""
        return self._released(listeners, entry, self.buffer.see(time_us))

    def advance(self, listeners: Collection[Listener[T]], entry: Entry, watermark_us: int) -> Iterator[tuple[Entry, T]]:
        """No event before a time comes any more."""
        return self._released(listeners, entry, self.buffer.advance(watermark_us))

    def drain(self, listeners: Collection[Listener[T]], entry: Entry) -> Iterator[tuple[Entry, T]]:
        """No event comes any more."""
        return self._released(listeners, entry, self.buffer.drain())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget events of every other key; ``has_counts``: go on from the counts so far."""
        self.buffer.keep(is_kept(self.buffer.key_hashes))
        if not has_counts:
            self.counts = dict.fromkeys(LATE_COUNTS, 0)

    def _released(
        self, listeners: Collection[Listener[T]], entry: Entry, batch: EventBatch
    ) -> Iterator[tuple[Entry, T]]:
        """Hand on events that need not wait any more, and let time come as far as the watermark."""
        watermark_us = self.buffer.watermark_us
        for listener in listeners:
            if len(batch):
                yield entry, listener.process(batch)
            newest_us = listener.newest_us
            if watermark_us is not None and (newest_us is None or watermark_us > newest_us):
                yield entry, listener.advance_time(watermark_us)

    def _with_late(
        self, listeners: Collection[Listener[T]], last: Entry, batch: EventBatch, late: Iterator[tuple[int, Entry]]
    ) -> Iterator[tuple[Entry, T]]:
        """Hand on late events where they came, between those before and behind them."""
        first = 0
        for row, entry in late:
            yield from self._released(listeners, entry, self.buffer.push(batch.slice(first, row - first)))
            for listener in listeners:
                yield entry, listener.process(batch.slice(row, 1))
            first = row + 1
        yield from self._released(listeners, last, self.buffer.push(batch.slice(first)))


def _shown(time_us: int) -> str:
    return format_time(min(max(time_us, EARLIEST_US), LATEST_US))
