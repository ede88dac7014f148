"""Inputs of aggregates that do not group by the stream's key.

An input re-keys events by their group, so that all events of a group are processed in one shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import orjson

from aggregates import COUNTS, ENDS, RETRACTS, EventColumns, Scalar, Window, read_aggregate
from shards.hosts.keyed_host import KeyedHost, Operator
from shards.kinds.aggregates.reading import EventReader, moved_events
from shards.kinds.aggregates.row_groups import RowGroups
from shards.operators import NO_OUTPUT, KeyChoice, Origin, Output, Result, SavedHost
from shards.rows import ResultRows
from streams import Definition, EventBatch, StreamDeclaration, key_hash

_MOST_GROUPS = 1_000_000
_UNKNOWN = "unknown_retractions"


@dataclass(frozen=True, slots=True)
class MovedEvents(Output):
    """Events re-keyed by their groups. The log carries each event to the shard of its group."""

    into: str
    events: EventBatch

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield the re-keyed events as rows that the sink appends to the log."""
        yield ResultRows.rekeyed(self.into, self.events)


class AggregateInput(Operator):
    """The input of an aggregate at the place of its stream.

    In a derived stream, a retraction has only the id of the retracted event. So the input remembers the group of each
    event for as long as the event can be in a window. A retraction of any other event is counted and has no effect.
    """

    def __init__(self, definition: Definition, declaration: StreamDeclaration) -> None:
        super().__init__(definition, declaration)
        self._body = read_aggregate(definition.body["aggregate"])
        self._reader = EventReader.of(self._body)
        self._table = RowGroups(self._body)
        self._groups: dict[str, tuple[int, str, tuple[Scalar, ...]]] = {}  # time, key and group by id
        self._unknown = 0

    def process(self, batch: EventBatch) -> Output:
        """Return the events that satisfy ``where``, re-keyed by their groups.

        Events of equal time stay in the order in which they arrived.
        """
        if batch.is_ended.any():
            batch = batch.take(np.flatnonzero(~batch.is_ended))
        if not len(batch):
            return NO_OUTPUT
        self._table.read(batch.tables)
        moved = [self._moved(part) for part in self._table.parts(batch)]
        self._forget(int(batch.time_us.max()))
        events = EventBatch.joined(moved)
        return MovedEvents(self.definition.body["into"], events) if len(events) else NO_OUTPUT

    def _moved(self, batch: EventBatch) -> EventBatch:
        events = self._reader.columns(batch, self.declaration)
        groups_of = [*self._groups_of(events)]
        numbers = np.repeat(np.arange(len(events)), [*map(len, groups_of)])
        return moved_events(events.at(numbers), [group for groups in groups_of for group in groups], self._body)

    def _groups_of(self, events: EventColumns) -> Iterator[Sequence[tuple[Scalar, ...]]]:
        """Yield the groups of each event. A retraction has the groups of the retracted event, if still known."""
        ops = [COUNTS] * len(events) if events.ops is None else events.ops.tolist()
        groups = events.groups_at(np.arange(len(events)))
        for row, (op, time_us, group) in enumerate(zip(ops, events.times_us.tolist(), groups, strict=True)):
            if op == ENDS:
                yield ()
            elif self._body.rows_of is not None:
                yield self._table.groups_of(time_us, group)
            elif op & RETRACTS:
                known = self._groups.pop(events.retracted[row], None)
                self._unknown += known is None
                yield () if known is None else (known[2],)
            else:
                if self.declaration.derived and not self._body.is_final:
                    self._groups[events.ids[row]] = time_us, events.keys[row], group
                yield (group,)

    def _forget(self, now_us: int) -> None:
        """Forget the groups of events that have left every window, because these cannot be retracted any more.

        If too many groups remain, the oldest are forgotten too. For sessions and for the last n events, time alone does
        not decide when an event leaves its window.
        """
        window: Window = self._body.window
        oldest_us = None if window.kind in ("session", "last") else now_us - 2 * window.size
        gone: list[str] = []
        for identity, (time_us, *_) in self._groups.items():
            if len(self._groups) - len(gone) <= _MOST_GROUPS and (oldest_us is None or time_us >= oldest_us):
                break
            gone.append(identity)
        for identity in gone:
            del self._groups[identity]

    def advance_time(self, watermark_us: int) -> Output:
        """Do nothing, because passing time re-keys no event."""
        return NO_OUTPUT

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget the groups of events whose keys are not kept. Without ``has_counts``, counters restart from 0."""
        hashes = np.array([key_hash(key) for _, key, _ in self._groups.values()], np.uint64)
        stays = is_kept(hashes).tolist()
        self._groups = {name: group for (name, group), stay in zip(self._groups.items(), stays, strict=True) if stay}
        if not has_counts:
            self._unknown = 0

    def measures(self) -> Mapping[str, int]:
        """Return two counts: events whose groups are remembered, and retractions without a remembered group."""
        return {"retractable": len(self._groups), _UNKNOWN: self._unknown}

    def dump(self) -> SavedHost:
        """Save the groups of events that may be retracted, and the number of retractions without a known group."""
        return SavedHost(head={_UNKNOWN: self._unknown}, sections={"groups": orjson.dumps([*self._groups.items()])})

    def load(self, saved: SavedHost) -> None:
        self._unknown = saved.head.get(_UNKNOWN, 0)  # missing in states of earlier builds
        saved_groups: list[Any] = orjson.loads(saved.sections["groups"])
        self._groups = {name: (time_us, key, tuple(group)) for name, (time_us, key, group) in saved_groups}


class AggregateInputHost(KeyedHost):
    """Host of the inputs of aggregates at one place."""

    has_traces: ClassVar[bool] = False
