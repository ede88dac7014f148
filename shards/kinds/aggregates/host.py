"""The aggregates at one place of a shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aggregates import (
    KEY,
    AggregateBody,
    AggregateRefused,
    AggregateRun,
    Emission,
    EventColumns,
    QuestionIndex,
    RowWindows,
    columns_of,
    events_of,
    held_window,
    read_aggregate,
    read_question,
)
from shards.blob import sections_below
from shards.hosts.keyed_host import Operator
from shards.kinds.aggregates.reading import (
    EventReader,
    are_revocable,
    condition_and_bounds,
    moved_columns,
    reading_of,
    rows_of_reading,
)
from shards.kinds.aggregates.results import AGGREGATE_SUSPENSION, moved_stream
from shards.kinds.aggregates.row_groups import RowGroups
from shards.kinds.derived_rows import DerivedOutput
from shards.operators import KeyChoice, Origin, Result, SavedHost
from shards.rows import row_id
from streams import Definition, EventBatch, StreamDeclaration, key_hash
from streams.tables import Tables


@dataclass(frozen=True, slots=True)
class AggregateResults(DerivedOutput):
    """The output of an aggregate for a batch or for an advance of time.

    Attributes:
        is_suspended: Whether the aggregate is suspended, because the batch made it hold more events than it may.
    """

    is_suspended: bool = False

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield a row for each derived event, and a row for the suspension if the aggregate is suspended."""
        definition = self.definition
        yield from DerivedOutput.results(self, origin)
        if self.is_suspended:
            aggregate = read_aggregate(definition.body)
            held, shorter = f"more than {aggregate.most_rows:,} events", "window"
            if aggregate.having is not None and aggregate.having.earlier:
                held, shorter = f"{held} and earlier values", "window or the time in before(...)"
            identity = row_id(AGGREGATE_SUSPENSION, self.stream, definition.name, definition.version)
            reason = (
                f"the aggregate {definition.name!r} (version {definition.version}) is suspended, as its windows would "
                f"hold {held} in one shard. Shorten the {shorter}, or raise 'rows' in its memory. It emits nothing "
                "until another version is registered or it is resumed, and begins from nothing then"
            )
            body = {
                "type": AGGREGATE_SUSPENSION.delivered_as,
                "id": identity,
                "operator": "aggregate",
                "stream": self.stream,
                "pattern": definition.name,
                "version": definition.version,
                "shard": origin.shard,
                "reason": reason,
            }
            yield AGGREGATE_SUSPENSION, identity, body


class RunningAggregate(Operator):
    """A running aggregate, at the place of its stream or at the place of its re-keyed events."""

    waits_for_time = True  # as time passes, events leave windows and windows end

    def __init__(self, definition: Definition, declaration: StreamDeclaration) -> None:
        super().__init__(definition, declaration)
        self._body: AggregateBody = read_aggregate(definition.body)
        self._reader = EventReader.of(self._body)
        self._is_moved = declaration.name == moved_stream(definition.name)
        self._reading = reading_of(self._body)
        self._other_version = 0  # number of re-keyed events that were read by another version
        is_simultaneous = declaration.ties == "simultaneous"
        self._tables = Tables()
        holds, bounds = condition_and_bounds(self._body, lambda: self._tables)
        self._rows_of = RowGroups(self._body)
        holds = self._rows_of.of_rows(holds)
        self._new_run = partial(AggregateRun, holds=holds, bounds=bounds, is_simultaneous=is_simultaneous)
        self._run = self._begin(is_revocable=declaration.derived and not self._is_moved)
        self._index = self._new_index()
        self._now_us: int | None = None

    def _begin(self, *, is_revocable: bool) -> AggregateRun | RowWindows:
        if self._body.window.column:
            return RowWindows(self._body, self._new_run)
        return self._new_run(self._body, is_revocable=is_revocable)

    def use_tables(self, tables: Tables) -> None:
        """Let ``having`` and the groups of ``for_each_row_of`` read ``tables`` from now on."""
        self._tables = tables
        self._rows_of.read(tables)

    def process(self, batch: EventBatch) -> AggregateResults:
        """Add events to windows, remove the events that retractions name, and return the values to emit.

        Events that were re-keyed for a version with other groups or values are counted, but only advance time.
        """
        was_suspended = self._run.is_suspended
        if self._is_moved:
            clocks_us, rows = np.maximum.accumulate(batch.time_us), rows_of_reading(self._body, self._reading, batch)
            self._other_version += len(batch) - len(rows)
            if not len(rows):
                return self.advance_time(int(clocks_us[-1]))
            batch = batch.take(rows) if len(rows) < len(batch) else batch
            events = moved_columns(self._body, batch, clocks_us=clocks_us[rows], newest_us=int(clocks_us[-1]))
            if are_revocable(batch) and not self._run.is_revocable:  # in the first batch; all are revocable, or none
                self._run = self._begin(is_revocable=True)
        else:
            events = self._reader.columns(batch, self.declaration)
        self._see(events.newest_us)
        emissions = self._run.process(events)
        self._hold(events)
        return self._results(emissions, is_suspended=self._run.is_suspended and not was_suspended)

    def advance_time(self, watermark_us: int) -> AggregateResults:
        """Advance event time: remove events that leave windows, end windows, and return the values to emit."""
        self._see(watermark_us)
        if self._index is not None:
            self._index.expire(watermark_us)
        return self._results(self._run.advance_time(watermark_us))

    def end_trace(self, key: str, time_us: int | None) -> AggregateResults:
        """End the windows that close with the transaction of a key, at ``time_us`` or at the time reached (None)."""
        when_us = self._now_us if time_us is None else time_us
        return self._results([] if when_us is None else self._run.end_key(key_hash(key), when_us))

    def finish(self) -> AggregateResults:
        return self._results(self._run.finish())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Keep the groups of the chosen keys, and drop all others."""
        keys = self._run.keys()
        self._run.drop(np.logical_not(is_kept(keys)), keys)
        if not has_counts:
            self._run.clear_counts()
            self._other_version = 0
        if self._index is not None:
            self._index.keep(KEY, lambda known: is_kept(np.array([key_hash(str(key)) for key in known], np.uint64)))

    def measures(self) -> Mapping[str, int]:
        """Return four counts: groups, events in windows, late events, and events from another version."""
        others = {"other_version": self._other_version} if self._other_version else {}
        return {**self._run.measures(), **others}

    def dump(self) -> SavedHost:
        head, sections = self._run.dump()
        saved: dict[str, Any] = {"run": head, "seen_us": self._now_us}
        if self._other_version:
            saved["other_version"] = self._other_version
        if self._index is not None:
            saved["index"], held = self._index.dump()
            sections = {**sections, **{f"index/{name}": body for name, body in held.items()}}
        return SavedHost(head=saved, sections=sections)

    def load(self, saved: SavedHost) -> None:
        head = saved.head["run"]
        self._run = self._begin(is_revocable=head.get("revocable", False))
        self._run.load(head, saved.sections)
        self._now_us = saved.head["seen_us"]
        self._other_version = saved.head.get("other_version", 0)
        if self._index is not None:
            self._index.load(saved.head["index"], sections_below(saved.sections, "index"))

    def answer(self, question: Mapping[str, Any], until_us: int | None) -> Mapping[str, Any]:
        """Answer a question about the values of an aggregate with ``ask``, by group.

        The answer comes from the aggregate's index of the events in its window. With ``explain``, it also describes the
        index. With ``explain: only``, it describes the index without a query, so that the index's statistics of
        questions do not change.
        """
        wanted = read_question(self._body, question, until_us)
        if self._index is None or self._run.is_suspended:
            raise AggregateRefused(f"the aggregate {self.definition.name!r} is suspended")
        if question.get("explain") == "only":
            return {"index": self._index.explain()}
        members: dict[str, Any] = {"answer": self._index.ask(wanted).to_json()}
        return members | {"index": self._index.explain()} if question.get("explain") else members

    def _new_index(self) -> QuestionIndex | None:
        return QuestionIndex(held_window(self._body)) if self._body.ask else None

    def _hold(self, events: EventColumns) -> None:
        if self._index is None:
            return
        if self._run.is_suspended:
            self._index = self._new_index()
            return
        self._index.insert(*columns_of(self._body, events))
        self._index.expire(events.newest_us)

    def _see(self, time_us: int) -> None:
        self._now_us = time_us if self._now_us is None else max(self._now_us, time_us)

    def _results(self, emissions: list[Emission], *, is_suspended: bool = False) -> AggregateResults:
        aggregate = self.definition
        events = events_of(emissions, aggregate.name, aggregate.version, self._body.event_type or aggregate.name)
        return AggregateResults(self.declaration.name, aggregate, events, is_suspended)
