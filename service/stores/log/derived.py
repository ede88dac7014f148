"""Appending derived events to the log: marks keep duplicates out, promises let the time of derived streams pass.

A *mark* belongs to a derived stream and a source shard. It records how much of which micro-batch is in the log: the
position after which the shard's range begins, and the number of its events that were appended. The script that appends
moves the mark. A *promise* is the time before which a shard adds nothing more to a derived stream; null where the
shard cannot promise anything yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
import orjson

from service.stores.connection import Client, register
from service.stores.log.backlog import APPENDED_KEY, MATCHED_KEY
from service.stores.log.layout import DERIVED_MARKS_KEY, DERIVED_PROMISES_KEY, LayoutStore
from service.stores.log.lives import STREAMS_KEY, is_older, since_of
from service.stores.log.stream_times import STREAM_TIMES_KEY, StreamTimesStore
from streams import LAYOUT_KEY, EventBatch, Tick, log_key, position_order

CHUNK_EVENTS = 5_000

_Move: TypeAlias = tuple[str, str, str]  # of a mark: its field, the expected value (empty: no mark), the new value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DerivedPart:
    """The events of a derived stream that a shard found in a micro-batch.

    Attributes:
        after: Position after which the shard's range in the micro-batch begins.
        until: Position at which it ends.
        events: Events in the order of time and id.
        positions: For each event, the position in the shard's log of the entry that brought it; empty: all events
            belong to the present declaration of the stream.
    """

    shard: int
    after: str
    until: str
    events: EventBatch
    positions: Sequence[str] = ()


class DerivedEventStore:
    """Appends derived events once, and ticks that announce how far the time of their streams has come."""

    def __init__(self, client: Client, layout: LayoutStore, times: StreamTimesStore) -> None:
        self._client = client
        self._layout = layout
        self._times = times
        self._append = register(client, "log/append_derived")

    def append(self, stream: str, parts: Sequence[DerivedPart]) -> int:
        """Append the events that are not in the log yet, and return their number.

        Events that an earlier attempt appended are skipped, and events that are known to be matched: a new checkpoint
        reads the log again, in other ranges. Events that were derived before the stream was declared are left out: they
        belong to a former stream of the same name. Each part holds all events that its shard found in the micro-batch.
        Raises ``LogResharding`` also if the log was resharded since this process read its layout.
        """
        appended = 0
        parts = self._unwritten(parts)
        while (since := since_of(self._client, stream)) and (chunk := self._next_chunk(stream, parts, since)):
            if self._append_chunk(stream, since, chunk):
                appended += sum(len(part.events) for part, _ in chunk)
        return appended

    def promise(
        self, stream: str, by_shard: Mapping[int, int | None], ends: Mapping[int, str] = MappingProxyType({})
    ) -> bool:
        """Store the promises of shards to a derived stream, and append a tick to every shard if its time has advanced.

        A promise is in microseconds, None where the shard promises nothing yet. ``ends`` has the position up to which
        each shard had read its log: a shard that had not reached the present declaration of the stream promises
        nothing. Returns whether the time of the stream has advanced.
        """
        since = since_of(self._client, stream)
        promises = {
            _field(stream, shard): f"{'' if time_us is None else time_us}@{since}"
            for shard, time_us in by_shard.items()
            if since and not (shard in ends and is_older(ends[shard], since))
        }
        if not promises:
            return False
        self._client.hset(DERIVED_PROMISES_KEY, mapping=cast(Any, promises))
        promised = self._promises(stream, since)
        known = [time_us for time_us in promised if time_us is not None]
        if len(known) < len(promised):
            return False
        tick = Tick(time_us=min(known), cause="events")
        return self._times.tick(stream, tick, self._layout, token=self._layout.token, since=since)

    def promises(self, stream: str) -> list[int | None]:
        """The latest promise of each shard to a derived stream; None where it promises nothing yet."""
        return self._promises(stream, since_of(self._client, stream))

    def _promises(self, stream: str, since: str) -> list[int | None]:
        found = cast("list[bytes | None]", self._client.hmget(DERIVED_PROMISES_KEY, self._fields(stream)))
        return [_promised((body or b"").decode(), since) for body in found]

    def forget(self, stream: str) -> None:
        """Drop the promises to a deleted stream; its marks stay, as positions of the log never come again."""
        self._client.hdel(DERIVED_PROMISES_KEY, *self._fields(stream))

    def _fields(self, stream: str) -> list[str]:
        return [_field(stream, shard) for shard in range(self._layout.known().shards)]

    def _unwritten(self, parts: Sequence[DerivedPart]) -> list[DerivedPart]:
        """The parts whose ranges are not matched yet: new parts, and parts of a micro-batch that is written again."""
        fields = [f"position:{part.shard}" for part in parts]
        found = cast("list[bytes | None]", self._client.hmget(MATCHED_KEY, fields)) if fields else []
        return [
            part
            for part, noted in zip(parts, found, strict=True)
            if noted is None or position_order(noted.decode()) < position_order(part.until)
        ]

    def _next_chunk(self, stream: str, parts: Sequence[DerivedPart], since: str) -> list[tuple[DerivedPart, _Move]]:
        """The next events to append, by shard, each with the move of its mark; at most ``CHUNK_EVENTS``.

        Marks also count the events that are left out.
        """
        if not parts:
            return []
        fields = [_field(stream, part.shard) for part in parts]
        found = cast("list[bytes | None]", self._client.hmget(DERIVED_MARKS_KEY, fields))
        chunk, room = [], CHUNK_EVENTS
        for part, body in zip(parts, found, strict=True):
            mark = "" if body is None else body.decode()
            done = _done(mark, part)
            events = part.events.slice(done, min(room, len(part.events) - done))
            if len(events):
                move = (_field(stream, part.shard), mark, f"{part.after} {done + len(events)}")
                room -= len(events)
                if old := [one for one in set(part.positions) if is_older(one, since)]:
                    events = events.take(np.flatnonzero(~np.isin(part.positions[done : done + len(events)], old)))
                chunk.append((replace(part, events=events), move))
        return chunk

    def _append_chunk(self, stream: str, since: str, chunk: Sequence[tuple[DerivedPart, _Move]]) -> bool:
        """Append a chunk, unless its marks have moved since they were read, or the stream was declared again."""
        shards = self._layout.known().shards
        batch = EventBatch.joined([part.events for part, _ in chunk])
        by_shard = batch.split_by_shard(shards)
        reply = self._append(
            marks=DERIVED_MARKS_KEY,
            appended=APPENDED_KEY,
            times=STREAM_TIMES_KEY,
            layout=LAYOUT_KEY,
            streams=STREAMS_KEY,
            shards=[log_key(shard) for shard in by_shard],
            moves=orjson.dumps([move for _, move in chunk]),
            stream=stream,
            since=since,
            newest_us=int(batch.time_us.max()) if len(batch) else b"",
            shard_count=shards,
            token=self._layout.token,
            parts=[value for events in by_shard.values() for value in (events.to_bytes(), len(events))],
        )
        self._layout.require(reply)
        return bool(reply)


def _done(mark: str, part: DerivedPart) -> int:
    """The number of events of a part that are in the log by its mark: all, if the mark is of a later micro-batch."""
    if not mark:
        return 0
    position, number = mark.split()
    if position == part.after:
        return min(int(number), len(part.events))
    return len(part.events) if position_order(position) > position_order(part.after) else 0


def _field(stream: str, shard: int) -> str:
    return f"{shard}:{stream}"


def _promised(text: str, since: str) -> int | None:
    """A shard's promise to the stream declared at ``since``; older releases did not store the time of declaration."""
    time_us, _, life = text.partition("@")
    return int(time_us) if time_us and life in ("", since) else None
