"""A project over a finite history, round by round: one shard of one round, without Spark.

A round matches the streams whose events are complete. A derived stream that is fed with the same key by streams of a
round belongs to this round, because its events do not leave the shard. Events derived for another key, or for a stream
that also receives such events, are the input of a later round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import orjson
import pyarrow.compute as pc

from shards.deciding import undecided
from shards.entries import EventsEntry, StoredEntry
from shards.results import DERIVED
from shards.rows import OutputRow, RowBlock
from shards.state import ShardState
from streams import ControlRecord, Event, EventBatch, encode_control, parse_time


@dataclass(frozen=True)
class ChainPlan:
    """The streams, patterns and joins that a project declares.

    Attributes:
        records: Control records as they would be in the log before the first event, each with its stream.
    """

    records: tuple[tuple[str, ControlRecord], ...]

    def begun(self, shard: int) -> ShardState:
        """A shard that has applied the project's records and no events."""
        state = ShardState(shard)
        state.advance(
            StoredEntry(position=_position(number), kind=record.KIND.value, stream=stream, body=encode_control(record))
            for number, (stream, record) in enumerate(self._records, start=1)
        )
        return state

    @cached_property
    def _records(self) -> list[tuple[str, ControlRecord]]:
        return [(stream, undecided(record)) for stream, record in self.records]

    @cached_property
    def rounds(self) -> tuple[tuple[str, ...], ...]:
        """The streams of each round; a stream follows the streams that feed it."""
        last = max(self._numbers.values(), default=-1)
        return tuple(
            tuple(stream for stream, number in self._numbers.items() if number == one) for one in range(last + 1)
        )

    @cached_property
    def divided(self) -> tuple[str, ...]:
        """Streams of merged events that rounds cannot derive.

        One input of the join stays in its shard, in an earlier round, while another input has a key of its own.
        """
        found = (
            feed.stream
            for (source, *_), feeds in self.begun(0).feeds.of.items()
            for feed in feeds
            if feed.is_merged and not feed.is_rekeyed and self._numbers[source] < self._numbers[feed.stream]
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        """The round number of each stream."""
        state = self.begun(0)
        numbers: dict[str, int] = {}
        for stream in state.streams:
            fed = [
                numbers[source] + feed.is_rekeyed
                for (source, *_), feeds in state.feeds.of.items()
                for feed in feeds
                if feed.stream == stream
            ]
            numbers[stream] = max(fed, default=0)
        return numbers


class ChainShard:
    """One shard in one round.

    Args:
        plan: The project.
        number: Number of the round.
        shard: Number of the shard.
    """

    def __init__(self, plan: ChainPlan, number: int, shard: int) -> None:
        self._state = plan.begun(shard)
        self._streams = plan.rounds[number]
        self._entries = len(plan.records)

    def feed(self, stream: str, route: str, batch: EventBatch) -> list[RowBlock]:
        """Match events of a stream of this round; events of a derived stream may come in any order."""
        self._entries += 1
        entry = EventsEntry(position=_position(self._entries), stream=stream, batch=batch, route=route)
        return self._state.take(entry)

    def finish(self) -> list[RowBlock]:
        """Rows that the end of the round's events causes."""
        return self._state.finish(self._streams)

    def handed_on(self, blocks: Iterable[RowBlock]) -> Iterator[tuple[str, Event]]:
        """The derived events among these rows that a later round must read, each with its stream."""
        for row in (row for block in blocks if block.found.kind is DERIVED for row in block):
            stream, event, is_rekeyed = derived_event(row)
            if is_rekeyed or stream not in self._streams:
                yield stream, event


def has_rekeyed(block: RowBlock) -> bool:
    """Whether some rows of a block are derived events with keys of their own; none is read for that."""
    if block.found.kind is not DERIVED:
        return False
    return not pc.all(pc.ends_with(block.found.bodies, '"rekeyed":false}')).as_py()


def derived_event(row: OutputRow) -> tuple[str, Event, bool]:
    """Read a row of the kind ``DERIVED``: derived stream, event, and whether the event has a key of its own."""
    body = orjson.loads(row.body)
    event = Event(id=row.id, type=body["type"], time_us=parse_time(body["time"]), key=body["key"], data=body["data"])
    return body["into"], event, body["rekeyed"]


def _position(number: int) -> str:
    return f"1-{number}"
