"""The pipeline without Spark: shards in this process, which also do the sink's work for derived streams.

The results must equal those of the Spark job together with the sink.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shards.deciding import Deciders
from shards.entries import EventsEntry, StoredEntry
from shards.kinds import KINDS_BY_NAME
from shards.operators import Kind
from shards.rows import RowBlock, results_of
from shards.state import ShardState
from streams import (
    BLOCK_EVENTS,
    CLOSED_US,
    NEVER_US,
    AttributePath,
    ControlRecord,
    EventBatch,
    StreamOff,
    Tick,
    encode_control,
)


class Decided(NamedTuple):
    """A decision of a decider.

    Attributes:
        events: Number of events of the observed stream that were fed before the decision; 0 if all streams were
            observed.
    """

    stream: str
    record: ControlRecord
    events: int


class InlineShards:
    """Shards that run in this process, with their logs. They also carry re-keyed events to each other's logs."""

    def __init__(self, shards: int, kinds: Mapping[str, Kind] = KINDS_BY_NAME) -> None:
        self.states = [ShardState(shard, kinds=kinds) for shard in range(shards)]
        self._waiting: list[deque[StoredEntry | EventsEntry]] = [deque() for _ in range(shards)]
        self._appended = [0] * shards
        self._newest_us: dict[str, int] = {}
        self._fed: Counter[str] = Counter()
        self._ended: dict[str, list[int]] = {}
        self._promised: dict[str, int] = {}
        self._closed: dict[str, int] = {}
        self._deciders = Deciders()
        self.decisions: list[Decided] = []

    def append_record(self, stream: str, record: ControlRecord) -> None:
        """Append a control record to the log of every shard."""
        if isinstance(record, StreamOff):
            self._forget(stream)
        for shard in range(len(self.states)):
            position = self._next(shard)
            self._waiting[shard].append(
                StoredEntry(position=position, kind=record.KIND.value, stream=stream, body=encode_control(record))
            )

    def _forget(self, stream: str) -> None:
        """Forget a removed stream. A new stream of the same name must not get events that older entries produce."""
        self._ended[stream] = list(self._appended)
        for by_stream in (self._promised, self._closed, self._newest_us, self._fed):
            by_stream.pop(stream, None)
        self._deciders.forget(stream)

    def _is_over(self, stream: str, shard: int, position: str) -> bool:
        """Return whether an entry of a stream is ignored, because the stream was removed after the entry's position."""
        return stream in self._ended and int(position.partition("-")[2]) <= self._ended[stream][shard]

    def feed(self, stream: str, batch: EventBatch, route: str = "") -> None:
        """Append events to the logs of the shards that own their keys.

        ``route`` names the further key by which the events are keyed. It is empty for the correlation key.
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

    def fed(self, stream: str) -> int:
        """Return the number of events of a posted stream that were fed so far."""
        return self._fed[stream]

    def feed_and_decide(self, stream: str, batch: EventBatch, routes: Mapping[str, AttributePath]) -> list[RowBlock]:
        """Feed posted events, and let the deciders decide after every ``BLOCK_EVENTS`` events of the stream.

        Events of earlier calls count. ``routes`` has the further keys by which the events are fed, too. Before each
        decision, all entries are matched. Their rows are returned.
        """
        rows: list[RowBlock] = []
        first = 0
        while first < len(batch):
            part = batch.slice(first, min(BLOCK_EVENTS - self._fed[stream] % BLOCK_EVENTS, len(batch) - first))
            self.feed(stream, part)
            for route, path in routes.items():
                self.feed(stream, part.keyed_by(path), route)
            first += len(part)
            if not self._fed[stream] % BLOCK_EVENTS:
                rows += self.decide(stream)
        return rows

    @property
    def decided(self) -> Counter[str]:
        """The number of decisions by stream."""
        return Counter(decision.stream for decision in self.decisions)

    @property
    def waiting(self) -> list[int]:
        """The number of entries of each shard that are not matched yet."""
        return [len(entries) for entries in self._waiting]

    def step(self, shard: int, entries: int) -> list[RowBlock]:
        """Match the next entries of a shard as one micro-batch, at most ``entries``, and return the rows.

        Re-keyed events are appended to the logs of the shards of their keys.
        """
        step_entries = [self._waiting[shard].popleft() for _ in range(min(entries, len(self._waiting[shard])))]
        rows = self.states[shard].advance(step_entries)
        self._forward(rows)
        return results_of(rows)

    def settle(self) -> list[RowBlock]:
        """Match all entries, including those that are appended meanwhile, and return the rows."""
        rows: list[RowBlock] = []
        while any(self._waiting):
            for shard, entries in enumerate(self._waiting):
                rows += self.step(shard, len(entries)) if entries else []
        return rows

    def decide(self, stream: str | None = None) -> list[RowBlock]:
        """Match all entries, and append to the logs what deciders conclude from the observations since the last call.

        If ``stream`` is given, the observations of other posted streams are left for a later call.
        """
        rows = self.settle()
        for target, record in self._deciders.decide(
            observation for state in self.states for observation in state.observations(stream)
        ):
            self.append_record(target, record)
            self.decisions.append(Decided(target, record, self._fed[stream] if stream else 0))
        return rows

    def decider_states(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Return the stream, the name and the state of every decider."""
        return self._deciders.states()

    def pause(self) -> list[RowBlock]:
        """Simulate a pause without events, in which time advances a little in the streams that feed others.

        Each posted stream that feeds others gets a tick just after its newest time. Ticks are repeated until they are
        later than the newest events of all streams with re-keyed events. A posted stream without events gets no tick,
        so the streams derived from it wait. A stream that only has operators on further keys gets one tick at its
        newest time.
        """
        rows = self.settle()
        feeds = self.states[0].feeds
        sources = {
            source for stream_sources in feeds.sources.values() for source in stream_sources
        } - feeds.sources.keys()
        for stream in sorted({stream for state in self.states for stream in state.routed} - sources):
            if stream in self._newest_us:
                self.append_record(stream, _tick(self._newest_us[stream]))
        ticked = {source: self._newest_us[source] for source in sources if source in self._newest_us}
        while ticked:
            for source in sorted(ticked):
                ticked[source] += 1
                self.append_record(source, _tick(ticked[source]))
            rows += self.settle()
            waiting = {self._newest_us[stream] for stream in feeds.logged if stream in self._newest_us}
            ticked = {source: time_us for source, time_us in ticked.items() if time_us in waiting}
        return rows + self.settle()

    def finish(self) -> list[RowBlock]:
        """Finish a finite input, stream by stream, and return the rows. A stream is finished after its sources.

        First, each posted stream gets a tick at its newest time in all shards, as in a service. Once the sources of a
        derived stream are finished, its time advances to its newest event in all shards.
        """
        rows = self.settle()
        for stream in sorted(self._newest_us.keys() - self.states[0].feeds.sources.keys()):
            self.append_record(stream, _tick(self._newest_us[stream]))
        rows += self.settle()
        for stream in self.states[0].streams:
            times_us = [time_us for state in self.states if (time_us := state.newest_us(stream)) is not None]
            ends_us = {stream: max(times_us)} if times_us else {}
            blocks = [block for state in self.states for block in state.finish([stream], ends_us)]
            self._forward(blocks)
            rows += [*results_of(blocks), *self.settle()]
        return rows

    def _next(self, shard: int) -> str:
        self._appended[shard] += 1
        return f"1-{self._appended[shard]}"

    def _forward(self, rows: Sequence[RowBlock]) -> None:
        events: dict[str, list[EventBatch]] = defaultdict(list)
        for block in rows:
            if block.found.events is not None:
                into = block.found.subjects[0].as_py()
                if not self._is_over(into, block.shard, block.position):
                    events[into].append(block.found.events)
        for stream, batches in events.items():
            batch = EventBatch.joined(batches)
            self.feed(stream, batch.take(batch.order_by_time()))
        for stream in {stream for state in self.states for stream in state.promises()}:
            are_current = [not self._is_over(stream, state.shard, state.position) for state in self.states]
            promises = [
                state.promises().get(stream) if is_current else None
                for state, is_current in zip(self.states, are_current, strict=True)
            ]
            known_promises = [promise for promise in promises if promise is not None]
            if len(known_promises) < len(promises):
                continue
            least_us = min(known_promises)
            if least_us < CLOSED_US <= max(known_promises):
                continue
            promised = self._promised if least_us < CLOSED_US else self._closed
            if least_us > promised.get(stream, NEVER_US):
                self._promised.pop(stream, None)
                promised[stream] = least_us
                self.append_record(stream, _tick(least_us))


def _tick(time_us: int) -> Tick:
    return Tick(time_us=time_us, cause="events")
