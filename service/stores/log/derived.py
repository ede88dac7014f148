"""The store that appends derived events to the log, exactly once, and advances the time of derived streams.

A *mark* prevents duplicates. For a derived stream and a source shard, it records how much of the latest micro-batch is
in the log: the position after which the micro-batch starts, and the number of its events that were appended. The script
that appends the events also updates the mark.

A *promise* is a watermark: the time before which a shard adds no more events to a derived stream. It is None while the
shard cannot promise a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
import orjson

from service.stores.connection import Client, register
from service.stores.log.backlog import MATCHED_KEY
from service.stores.log.layout import DERIVED_MARKS_KEY, LayoutStore
from service.stores.log.stream_times import since_of
from streams import DERIVED_PROMISES_KEY, EventBatch, Tick, encode_control, is_older, log_key, position_order

CHUNK_EVENTS = 5_000

_Move: TypeAlias = tuple[str, str]  # the old value of a mark (empty: no mark), and its new value
_Promised: TypeAlias = tuple[str, Sequence[tuple[int, str, str]]]  # a stream, and (shard, promise, end) of its shards

_TICK = encode_control(Tick(time_us=0, cause="events")).replace(b'"time":0', b'"time":%d')


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DerivedPart:
    """The events of a derived stream that a shard derived in one micro-batch.

    Attributes:
        after: Position in the shard's log after which the micro-batch starts.
        until: Position of the last entry of the micro-batch.
        positions: For each event, the position of the entry from which it was derived. Empty if no event can belong to
            a former stream of the same name.
    """

    shard: int
    after: str
    until: str
    events: EventBatch
    positions: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of a write: how many events were appended, and how many derived streams got a tick."""

    events: int
    ticks: int


@dataclass(frozen=True, slots=True)
class _StreamState:
    since: str
    marks: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chunk:
    """Some of the events of a derived stream, which one script appends together.

    Attributes:
        moves: The old and the new mark of each source shard.
        size: Number of events that the new marks cover. It includes events that are not appended because they belong
            to a former stream of the same name.
        is_last: Whether this is the stream's last chunk of the micro-batch.
    """

    since: str
    moves: Mapping[int, _Move]
    events: EventBatch
    size: int
    is_last: bool

    @property
    def count(self) -> int:
        return len(self.events)


class DerivedEventStore:
    """Appends each derived event exactly once. Also appends ticks, which advance the time of derived streams."""

    def __init__(self, client: Client, layout: LayoutStore) -> None:
        self._client = client
        self._layout = layout
        self._read = register(client, "log/read_derived")
        self._append = register(client, "log/append_derived")

    def write(
        self,
        parts: Mapping[str, Sequence[DerivedPart]],
        promises: Mapping[str, Mapping[int, int | None]] = MappingProxyType({}),
        ends: Mapping[int, str] = MappingProxyType({}),
    ) -> Written:
        """Append derived events that are not in the log yet, then store the promises to derived streams.

        These events are skipped:

        - Events that an earlier attempt has appended.
        - Events from entries that are recorded as matched. With a new checkpoint, these entries are read again.
        - Events derived before the declaration of the stream, because they belong to a former stream of the same name.

        If the time of a stream has advanced, a tick is appended to every shard. If the log is being resharded, or was
        resharded since this process read its layout, raise ``LogResharding``.

        Args:
            parts: All derived events of the micro-batch by stream, in one part for each source shard.
            promises: Promises by derived stream and shard, in microseconds, or None if the shard promises nothing yet.
            ends: Position up to which each shard has read its log. The promise of a shard that has not reached the
                current declaration of the stream is ignored.
        """
        appended, ticks, promised = 0, 0, [(stream, _promises(by_shard, ends)) for stream, by_shard in promises.items()]
        while True:
            chunks, is_whole = self._next_chunks(parts) if parts else ({}, True)
            if not chunks and not promised:
                return Written(events=appended, ticks=ticks)
            done, sent = self._send(chunks, promised if is_whole else [])
            ticks += sent
            appended += sum(chunk.count for chunk, is_done in zip(chunks.values(), done, strict=True) if is_done)
            if is_whole and all(done):
                return Written(events=appended, ticks=ticks)

    def promises(self, stream: str) -> list[int | None]:
        """Return the latest promise of each shard to a derived stream, or None if the shard promises nothing yet."""
        since = since_of(self._client, stream)
        bodies = cast("list[bytes | None]", self._client.hmget(DERIVED_PROMISES_KEY, self._fields(stream)))
        return [_promised((body or b"").decode(), since) for body in bodies]

    def forget(self, stream: str) -> None:
        """Drop the promises to a deleted stream.

        The stream's marks need not be dropped, because positions of the log are never reused.
        """
        self._client.hdel(DERIVED_PROMISES_KEY, *self._fields(stream))

    def _fields(self, stream: str) -> list[str]:
        return [_field(stream, shard) for shard in range(self._layout.known().shards)]

    def _next_chunks(self, parts: Mapping[str, Sequence[DerivedPart]]) -> tuple[dict[str, _Chunk], bool]:
        """Return the next chunk of each stream, and whether no chunks remain after these.

        All returned chunks together cover at most ``CHUNK_EVENTS`` events.
        """
        states, matched = self._state(parts)
        chunks: dict[str, _Chunk] = {}
        events_left, is_whole = CHUNK_EVENTS, True
        for stream, stream_parts in parts.items():
            unmatched = [
                part for part in stream_parts if position_order(part.until) > position_order(matched[part.shard])
            ]
            chunk = _chunk(stream, states[stream], unmatched, events_left)
            events_left -= chunk.size
            is_whole &= chunk.is_last
            if chunk.moves:
                chunks[stream] = chunk
        return chunks, is_whole

    def _state(
        self, parts: Mapping[str, Sequence[DerivedPart]]
    ) -> tuple[Mapping[str, _StreamState], Mapping[int, str]]:
        shards = sorted({part.shard for stream_parts in parts.values() for part in stream_parts})
        reply = cast(
            "list[Any]",
            self._read(
                marks=DERIVED_MARKS_KEY,
                matched=MATCHED_KEY,
                positions=orjson.dumps(shards),
                names=list(parts),
            ),
        )
        states = {
            stream: _StreamState(since.decode(), dict(zip(shards, (mark.decode() for mark in marks), strict=True)))
            for stream, (since, *marks) in zip(parts, reply[: len(parts)], strict=True)
        }
        return states, dict(zip(shards, (position.decode() for position in reply[len(parts) :]), strict=True))

    def _send(self, chunks: Mapping[str, _Chunk], promised: Sequence[_Promised]) -> tuple[list[int], int]:
        """Return for each chunk whether it was appended, and the number of ticks."""
        shards = self._layout.known().shards
        appends, bodies = [], []
        for stream, chunk in chunks.items():
            by_shard = chunk.events.split_by_shard(shards)
            newest_us = str(int(chunk.events.time_us.max())) if len(chunk.events) else ""
            event_counts = [(shard, len(events)) for shard, events in by_shard.items()]
            bodies += [events.to_bytes() for events in by_shard.values()]
            moves = [(_field(stream, shard), *move) for shard, move in chunk.moves.items()]
            entry = {
                "stream": stream,
                "since": chunk.since,
                "newest_us": newest_us,
                "moves": moves,
                "parts": event_counts,
            }
            appends.append(entry)
        reply = self._append(
            marks=DERIVED_MARKS_KEY,
            shards=[log_key(shard) for shard in range(shards)],
            appends=orjson.dumps(appends),
            promising=orjson.dumps(promised),
            kind=Tick.KIND.value,
            tick=_TICK,
            shard_count=shards,
            token=self._layout.token,
            bodies=bodies,
        )
        self._layout.require(reply)
        done, ticks = reply
        return done, ticks


def _chunk(stream: str, state: _StreamState, parts: Sequence[DerivedPart], events_left: int) -> _Chunk:
    """Build the next chunk of a stream. Its marks also pass events of a former stream of the same name."""
    moves: dict[int, _Move] = {}
    batches: list[EventBatch] = []
    size, is_last = 0, True
    since = state.since
    for part in parts if since else ():
        mark = state.marks[part.shard]
        done = _done(mark, part)
        events = part.events.slice(done, min(events_left - size, len(part.events) - done))
        is_last &= done + len(events) == len(part.events)
        if len(events):
            moves[part.shard] = mark, f"{part.after} {done + len(events)}"
            size += len(events)
            if stale := [position for position in set(part.positions) if is_older(position, since)]:
                events = events.take(np.flatnonzero(~np.isin(part.positions[done : done + len(events)], stale)))
            batches.append(events)
    return _Chunk(since=since, moves=moves, events=EventBatch.joined(batches), size=size, is_last=is_last)


def _promises(by_shard: Mapping[int, int | None], ends: Mapping[int, str]) -> list[tuple[int, str, str]]:
    return [
        (shard, "" if time_us is None else str(time_us), ends.get(shard, "")) for shard, time_us in by_shard.items()
    ]


def _done(mark: str, part: DerivedPart) -> int:
    """Return how many events of a part are in the log: all events if ``mark`` is of a later micro-batch."""
    if not mark:
        return 0
    position, number = mark.split()
    if position == part.after:
        return min(int(number), len(part.events))
    return len(part.events) if position_order(position) > position_order(part.after) else 0


def _field(stream: str, shard: int) -> str:
    return f"{shard}:{stream}"


def _promised(text: str, since: str) -> int | None:
    """Return the time in a stored promise, or None if the promise was made to a former stream of the same name.

    ``since`` is the time at which the present stream was declared. A promise of an older release does not contain this
    time and is always accepted.
    """
    time_us, _, life = text.partition("@")
    return int(time_us) if time_us and life in ("", since) else None
