"""Chunks, the summaries of events with roughly rising keys, which measure how far the keys are out of order.

The *distance* of an event is how far its key is below the highest key of an earlier event, or 0 if no earlier key is
higher. For example, after the keys 5 9 7 the last event has distance 2. Keys are whole numbers. Events are in the order
of time. An event that is older than an earlier event of its shard gets the earlier event's time, because it arrives
afterwards. A shard knows only its own events. Its chunks have times, so its events can be compared with earlier events
of other shards.

Source: data-driven memory management for stream joins, section 3.1 of the specification. The source counts disorder in
arrivals. This module measures it in keys, because a shard does not know the positions of its events in the whole
stream.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

MOST_CHUNKS = 64
"""Largest number of chunks in one report of a shard."""

_CHUNK_EVENTS = 16
_MOST_WAITING = 8_192  # the most events that are not in chunks yet


@dataclass(frozen=True, slots=True)
class KeyChunk:
    """A summary of consecutive events of one input, sorted by time. ``least`` and ``greatest`` are their extreme keys.

    ``distance`` is an upper bound of how far the key of an event is below the key of an earlier event of the chunk.
    """

    first_us: int
    last_us: int
    events: int
    least: int
    greatest: int
    distance: int

    def to_json(self) -> list[int]:
        return list(astuple(self))


def chunks_of(times_us: NDArray[np.int64], keys: NDArray[np.int64], most: int = MOST_CHUNKS) -> list[KeyChunk]:
    """Divide events into chunks of 16. If more than ``most`` would result, chunks are larger. Times are ascending."""
    size = _CHUNK_EVENTS
    while len(keys) > size * most:
        size *= 2
    return [_chunk(times_us[at : at + size], keys[at : at + size]) for at in range(0, len(keys), size)]


def _chunk(times_us: NDArray[np.int64], keys: NDArray[np.int64]) -> KeyChunk:
    distances = np.maximum.accumulate(keys).astype(np.uint64) - keys.astype(
        np.uint64
    )  # the difference fits into 64 bits
    return KeyChunk(
        int(times_us[0]), int(times_us[-1]), len(keys), int(keys.min()), int(keys.max()), int(distances.max())
    )


def joined(first: KeyChunk, second: KeyChunk) -> KeyChunk:
    """Merge two chunks. If they overlap in time, an event of either may be earlier than any event of the other."""
    apart = (
        chunk.greatest - other.least
        for chunk, other in ((first, second), (second, first))
        if chunk.first_us < other.last_us
    )
    return KeyChunk(
        min(first.first_us, second.first_us),
        max(first.last_us, second.last_us),
        first.events + second.events,
        min(first.least, second.least),
        max(first.greatest, second.greatest),
        max(first.distance, second.distance, *apart),
    )


def fewer(chunks: Sequence[KeyChunk], most: int) -> list[KeyChunk]:
    """Merge chunks with their neighbours in time until at most ``most`` chunks remain."""
    merged = sorted(chunks, key=attrgetter("first_us", "last_us"))
    while len(merged) > most:
        pairs = [joined(chunk, following) for chunk, following in zip(merged[::2], merged[1::2], strict=False)]
        merged = pairs + merged[2 * len(pairs) :]
    return merged


def farthest(before: Iterable[KeyChunk], after: Iterable[KeyChunk]) -> int:
    """Return an upper bound of how far a key of ``after`` is below the key of an earlier event in ``before``.

    An event counts as earlier if its chunk begins before the other event's chunk ends. If chunks do not overlap, the
    bound is exact. A chunk in both arguments is not compared with itself.
    """
    ordered = sorted(before, key=attrgetter("first_us"))
    firsts = [chunk.first_us for chunk in ordered]
    highest: list[tuple[KeyChunk, KeyChunk | None]] = []  # for each prefix, the two chunks with the highest keys
    for chunk in ordered:
        if not highest:
            highest.append((chunk, None))
            continue
        first, second = highest[-1]
        if chunk.greatest > first.greatest:
            first, second = chunk, first
        elif second is None or chunk.greatest > second.greatest:
            second = chunk
        highest.append((first, second))
    distance = 0
    for later in after:
        if place := bisect_left(firsts, later.last_us):
            first, second = highest[place - 1]
            earlier = second if first is later else first
            if earlier is not None:
                distance = max(distance, earlier.greatest - later.least)
    return distance


class KeyMonitor:
    """Summarises times and keys of an input's events in one shard, for the decider of ``wait: auto``.

    The summary has a bounded size and is not saved.
    """

    def __init__(self) -> None:
        self._newest_us: int | None = None
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._events = 0
        self._chunks: list[KeyChunk] = []

    def add(self, times_us: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        if not len(keys):
            return
        if self._newest_us is not None:
            times_us = np.maximum(times_us, self._newest_us)
        times_us = np.maximum.accumulate(times_us)
        self._newest_us = int(times_us[-1])
        self._waiting.append((times_us, keys))
        self._events += len(keys)
        if self._events >= _MOST_WAITING:
            self._put_into_chunks()

    def take_chunks(self) -> list[KeyChunk]:
        """Return the chunks of the events since the last call, in the order of time."""
        self._put_into_chunks(is_all=True)
        chunks, self._chunks = self._chunks, []
        return chunks

    def _put_into_chunks(self, *, is_all: bool = False) -> None:
        """Move events that wait into chunks.

        Full groups of 8,192 events are moved, or all events if ``is_all`` is true. So the cuts depend on the number of
        events only, and not on batches.
        """
        if not self._events:
            return
        times_us, keys = (np.concatenate(columns) for columns in zip(*self._waiting, strict=True))
        chunked = len(keys) if is_all else len(keys) - len(keys) % _MOST_WAITING
        for at in range(0, chunked, _MOST_WAITING):
            until = min(at + _MOST_WAITING, chunked)
            self._chunks = _in_order([*self._chunks, *chunks_of(times_us[at:until], keys[at:until])])
        self._waiting = [(times_us[chunked:], keys[chunked:])] if chunked < len(keys) else []
        self._events = len(keys) - chunked


def _in_order(chunks: list[KeyChunk]) -> list[KeyChunk]:
    while len(chunks) > MOST_CHUNKS:
        pairs = [_followed(chunk, following) for chunk, following in zip(chunks[::2], chunks[1::2], strict=False)]
        chunks = pairs + chunks[2 * len(pairs) :]
    return chunks


def _followed(first: KeyChunk, second: KeyChunk) -> KeyChunk:
    distance = max(first.distance, second.distance, first.greatest - second.least)
    least, greatest = min(first.least, second.least), max(first.greatest, second.greatest)
    return KeyChunk(first.first_us, second.last_us, first.events + second.events, least, greatest, distance)
