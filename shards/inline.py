"""The pipeline without Spark: shards in this process, with what the sink does for derived streams.

What the Spark job and the sink together must equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shards.chains import derived_event
from shards.deciding import Deciders
from shards.entries import Entry, EventsEntry, StoredEntry
from shards.kinds import KINDS_BY_NAME
from shards.operators import Kind
from shards.results import DERIVED
from shards.rows import OutputRow, RowBlock
from shards.state import ShardState
from streams import NEVER_US, ControlRecord, Event, EventBatch, StreamOff, Tick, encode_control


def run_inline(logs: Mapping[int, Iterable[Entry]], states: Mapping[int, ShardState] | None = None) -> list[OutputRow]:
    """Rows of all shards, shard by shard, each in the order of its log; nothing is appended to the logs.

    Args:
        logs: Entries by shard, in log order.
        states: Where shards begin; they are advanced. A shard that is missing here begins empty.
    """
    given = states or {}
    rows: list[OutputRow] = []
    for shard, entries in sorted(logs.items()):
        state = given.get(shard) or ShardState(shard)
        rows.extend(state.apply(entries))
    return rows


class InlineShards:
    """Some shards, each with its log, and what goes from one to another.

    Args:
        shards: How many there are.
        kinds: The kinds of operators, by name.

    Attributes:
        states: Of the shards.
        decided: The number of decisions, by stream.
    """

    def __init__(self, shards: int, kinds: Mapping[str, Kind] = KINDS_BY_NAME) -> None:
        self.states = [ShardState(shard, kinds=kinds) for shard in range(shards)]
        self._waiting: list[deque[StoredEntry | EventsEntry]] = [deque() for _ in range(shards)]
        self._appended = [0] * shards
        self._newest_us: dict[str, int] = {}
        self._fed: Counter[str] = Counter()
        self._ended: dict[str, list[int]] = {}
        self._promised: dict[str, int] = {}
        self._deciders = Deciders()
        self.decided: Counter[str] = Counter()

    def say(self, stream: str, record: ControlRecord) -> None:
        """Append a control record to the log of every shard."""
        if isinstance(record, StreamOff):
            self._forget(stream)
        for shard in range(len(self.states)):
            position = self._next(shard)
            self._waiting[shard].append(
                StoredEntry(position=position, kind=record.KIND.value, stream=stream, body=encode_control(record))
            )

    def _forget(self, stream: str) -> None:
        """Forget a stream; what shards still derive for it from older entries is of no other one of its name."""
        self._ended[stream] = list(self._appended)
        for known in (self._promised, self._newest_us, self._fed):
            known.pop(stream, None)
        self._deciders.forget(stream)

    def _is_over(self, stream: str, shard: int, position: str) -> bool:
        """Whether an entry comes before the last end of a stream."""
        return stream in self._ended and int(position.partition("-")[2]) <= self._ended[stream][shard]

    def feed(self, stream: str, batch: EventBatch, route: str = "") -> None:
        """Append events to the logs of the shards of their keys.

        Args:
            stream: Its name.
            batch: In the order in which they are to be seen.
            route: Name of the further key that they are keyed by; empty for the correlation key.
        """
        if not route and stream not in self.states[0].feeds.sources:
            batch = batch.numbered(self._fed[stream])
            self._fed[stream] += len(batch)
        if len(batch):
            self._newest_us[stream] = max(int(batch.time_us.max()), self._newest_us.get(stream, NEVER_US))
        parts = {0: batch} if len(self.states) == 1 else batch.split_by_shard(len(self.states))
        for shard, part in parts.items():
            entry = EventsEntry(position=self._next(shard), stream=stream, batch=part, route=route)
            self._waiting[shard].append(entry)

    @property
    def waiting(self) -> list[int]:
        """How many entries of each shard wait to be matched."""
        return [len(entries) for entries in self._waiting]

    def step(self, shard: int, entries: int) -> list[RowBlock]:
        """Match the next entries of a shard, and append what they derive for other keys: one micro-batch."""
        taken = [self._waiting[shard].popleft() for _ in range(min(entries, len(self._waiting[shard])))]
        rows = self.states[shard].advance(taken)
        self._forward(rows)
        return rows

    def settle(self) -> list[RowBlock]:
        """Match until nothing waits."""
        rows: list[RowBlock] = []
        while any(self._waiting):
            for shard, entries in enumerate(self._waiting):
                rows += self.step(shard, len(entries)) if entries else []
        return rows

    def decide(self, stream: str | None = None) -> list[RowBlock]:
        """Match until nothing waits, and say to all shards what follows from what they observed since the last call.

        Args:
            stream: Of posted streams what was observed in this one; None: in all.
        """
        rows = self.settle()
        for target, record in self._deciders.decide(one for state in self.states for one in state.observations(stream)):
            self.say(target, record)
            self.decided[target] += 1
        return rows

    def decider_state(self, stream: str, name: str) -> Mapping[str, Any] | None:
        """The state of a decider, as plain JSON; None: nothing was observed."""
        return self._deciders.state(stream, name)

    def pause(self) -> list[RowBlock]:
        """What follows when no event has come for a while: time goes on a little in the streams that feed others.

        Each is ticked just beyond its newest time, and again where what is derived from it has just that time; a stream
        that has had no event holds back what is derived from it. Streams with operators on further keys are ticked to
        their own newest times.
        """
        rows = self.settle()
        feeds = self.states[0].feeds
        sources = {source for found in feeds.sources.values() for source in found} - feeds.sources.keys()
        for stream in sorted({stream for state in self.states for stream in state.routed} - sources):
            if stream in self._newest_us:
                self.say(stream, _tick(self._newest_us[stream]))
        ticked = {source: self._newest_us[source] for source in sources if source in self._newest_us}
        while ticked:
            for source in sorted(ticked):
                ticked[source] += 1
                self.say(source, _tick(ticked[source]))
            rows += self.settle()
            waiting = {self._newest_us[stream] for stream in feeds.logged if stream in self._newest_us}
            ticked = {source: time_us for source, time_us in ticked.items() if time_us in waiting}
        return rows + self.settle()

    def finish(self) -> list[RowBlock]:
        """What follows from the end of a finite input, stream by stream, each behind those that feed it.

        All shards see the newest time of each posted stream before, as they do in a service. The time of a derived
        stream follows from what feeds it: events that still wait there for older ones are older than its newest event.
        """
        rows = self.settle()
        for stream in sorted(self._newest_us.keys() - self.states[0].feeds.sources.keys()):
            self.say(stream, _tick(self._newest_us[stream]))
        rows += self.settle()
        for stream in self.states[0].streams:
            for state in self.states:
                found = state.finish([stream])
                self._forward(found)
                rows += found
            rows += self.settle()
        return rows

    def _next(self, shard: int) -> str:
        self._appended[shard] += 1
        return f"1-{self._appended[shard]}"

    def _forward(self, rows: Sequence[RowBlock]) -> None:
        """Append the events with keys of their own to the logs, and behind them how far all shards have come."""
        events: dict[str, list[Event]] = defaultdict(list)
        for row in (row for block in rows if block.found.kind is DERIVED for row in block):
            stream, event, is_rekeyed = derived_event(row)
            if is_rekeyed and not self._is_over(stream, row.shard, row.position):
                events[stream].append(event)
        for stream, some in events.items():
            batch = EventBatch.from_events(sorted(some, key=lambda event: (event.time_us, event.id)))
            self.feed(stream, batch)
        for stream in {stream for state in self.states for stream in state.promises()}:
            there = [not self._is_over(stream, state.shard, state.position) for state in self.states]
            promises = [
                state.promises().get(stream) if is_there else None
                for state, is_there in zip(self.states, there, strict=True)
            ]
            known = [one for one in promises if one is not None]
            if len(known) == len(promises) and min(known) > self._promised.get(stream, NEVER_US):
                self._promised[stream] = min(known)
                self.say(stream, _tick(min(known)))


def _tick(time_us: int) -> Tick:
    return Tick(time_us=time_us, cause="events")
