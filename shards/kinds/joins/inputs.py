"""What hands the events of a stream on to the joins that they take part in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from joins import CLOSED, LAST, merged_data, merged_id
from shards.kinds.joins.ruled_out import RuledOut
from shards.operators import KeyChoice, Origin, Result, SavedHost
from shards.results import DERIVED
from shards.rows import FoundRows
from streams import (
    ENDED,
    ConstraintsOn,
    ControlRecordError,
    Definition,
    Event,
    EventBatch,
    Start,
    StreamDeclaration,
    format_time,
    key_of,
)


@dataclass(frozen=True, slots=True)
class MergedOutput:
    """Merged events by the operator that made them.

    Attributes:
        stream: The stream that they are from.
        found: (operator, its definition's body, version, events, keys in their stream).
    """

    stream: str
    found: tuple[tuple[str, Mapping[str, Any], int, EventBatch, Sequence[str]], ...] = ()

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Those that stay in their shard."""
        return ((body["into"], batch) for _, body, _, batch, _ in self.found if body["path"] is None and len(batch))

    def results(self, origin: Origin) -> Iterator[Result]:
        """A row for each of those that go to another shard."""
        for name, body, version, batch, sources in self.found:
            if body["path"] is None or not len(batch):
                continue
            said = [
                (
                    event.id,
                    {
                        "id": event.id,
                        "stream": self.stream,
                        "into": body["into"],
                        "type": event.type,
                        "time": format_time(event.time_us),
                        "key": event.key,
                        "data": event.data,
                        "pattern": name,
                        "version": version,
                        "source_key": source,
                        "rekeyed": True,
                        "merged": True,
                    },
                )
                for event, source in zip(batch.to_events(), sources, strict=True)
            ]
            yield FoundRows.of(DERIVED, said)


@dataclass(slots=True)
class JoinInputHost:
    """The inputs of joins at one place.

    Attributes:
        declaration: Of the stream.
        running: Definitions by name.
        counts: Of each the number of events that it has handed on.
        newest_us: How far time has come.
        ruled_out: What constraints say of inputs that are finished by them; None: there is no such input.
    """

    declaration: StreamDeclaration
    running: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    newest_us: int | None = None
    ruled_out: RuledOut | None = None

    @classmethod
    def of(cls, declaration: StreamDeclaration, saved: SavedHost | None) -> JoinInputHost:
        """A host without inputs, or the one that was saved."""
        if saved is None:
            return cls(declaration)
        running = {name: (version, body) for name, version, body in saved.head["running"]}
        ruled_out = saved.head.get("ruled_out")
        return cls(
            declaration,
            running,
            dict(saved.head["counts"]),
            saved.head["newest_us"],
            None if ruled_out is None else RuledOut.load(ruled_out, declaration.ties),
        )

    @property
    def names(self) -> Collection[str]:
        """The inputs that run."""
        return self.running.keys()

    @property
    def waits_for_time(self) -> bool:
        """Time decides nothing here."""
        return False

    def start(self, definition: Definition, start: Start) -> None:
        """Start an input."""
        self.running[definition.name] = definition.version, definition.body
        self.counts.setdefault(definition.name, 0)
        if self.ruled_out is not None:
            self.ruled_out.restart(definition.name)

    def learn(self, followed: ConstraintsOn | None, open_keys: Callable[[], NDArray[np.uint64]]) -> None:
        """Know the constraints that traces follow, and which traces began unseen, where constraints finish an input."""
        if self.ruled_out is not None or not self._by_constraints:
            return
        self.ruled_out = RuledOut(self.declaration.ties, open_keys().tolist())
        if followed is not None:
            self.ruled_out.follow(followed)

    def stop(self, name: str) -> None:
        """Stop an input.

        Raises:
            ControlRecordError: None of that name runs.
        """
        if name not in self.running:
            raise ControlRecordError(f"no input {name!r} of a join runs on the stream {self.declaration.name!r}")
        del self.running[name], self.counts[name]
        if not self._by_constraints:
            self.ruled_out = None

    def declare(self, declaration: StreamDeclaration) -> MergedOutput:
        """Other types end traces from here on."""
        self.declaration = declaration
        return MergedOutput(self.declaration.name)

    def follow(self, record: ConstraintsOn) -> None:
        """Traces that begin later follow these constraints.

        Raises:
            ConstraintError: The document is refused.
        """
        if self.ruled_out is not None:
            self.ruled_out.follow(record)

    def process(self, batch: EventBatch) -> MergedOutput:
        """Hand events on."""
        if not len(batch):
            return MergedOutput(self.declaration.name)
        times_us = batch.time_us if self.newest_us is None else np.maximum(batch.time_us, self.newest_us)
        now_us = np.maximum.accumulate(times_us)
        self.newest_us = int(now_us[-1])
        finished = self._finished(batch, now_us)
        return MergedOutput(
            self.declaration.name, tuple(self._merged(name, batch, finished.get(name, ())) for name in self.running)
        )

    def advance_time(self, watermark_us: int) -> MergedOutput:
        """Time has come so far."""
        self.newest_us = watermark_us if self.newest_us is None else max(self.newest_us, watermark_us)
        if self.ruled_out is not None and (idle_us := self.declaration.idle_timeout_us) is not None:
            self.ruled_out.pass_time(self.newest_us - idle_us)
        return MergedOutput(self.declaration.name)

    def end_trace(self, key: str, time_us: int | None) -> MergedOutput:
        """The trace of a key ends, and with it the key in the inputs that say so, where it is that of the stream."""
        if self.ruled_out is not None:
            self.ruled_out.end(key)
        when = self.newest_us if time_us is None else time_us
        if when is None:
            return MergedOutput(self.declaration.name)
        ended = [
            (name, body, version, EventBatch.from_events([self._closing(name, body, key, when)]), [key])
            for name, (version, body) in self.running.items()
            if body["ends"] and body["path"] is None
        ]
        return MergedOutput(self.declaration.name, tuple(ended))

    def finish(self) -> MergedOutput:
        """No event comes any more; the join knows that by itself."""
        return MergedOutput(self.declaration.name)

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget the traces of other keys."""
        if self.ruled_out is not None:
            self.ruled_out.keep(is_kept)

    def measures(self) -> Mapping[str, int]:
        """How many events were handed on."""
        return {"handed_on": sum(self.counts.values())}

    def dump(self) -> SavedHost:
        """The definitions and counts."""
        running = [[name, version, body] for name, (version, body) in self.running.items()]
        head: dict[str, Any] = {"running": running, "counts": self.counts, "newest_us": self.newest_us}
        if self.ruled_out is not None:
            head["ruled_out"] = self.ruled_out.dump()
        return SavedHost(head=head, sections={})

    @property
    def _by_constraints(self) -> dict[str, tuple[str, ...]]:
        """The types of the inputs that constraints finish, by name."""
        return {name: tuple(body["types"]) for name, (_, body) in self.running.items() if body.get("workflow")}

    def _finished(self, batch: EventBatch, now_us: NDArray[np.int64]) -> dict[str, list[int]]:
        """By input the rows after whose events constraints leave no more events of it in the trace.

        Args:
            batch: The events.
            now_us: How far time has come with each.
        """
        found: dict[str, list[int]] = {}
        if self.ruled_out is None:
            return found
        inputs, idle_us = self._by_constraints, self.declaration.idle_timeout_us
        ends = [name in self.declaration.end_events or self.ruled_out.ends(name) for name in batch.type_names]
        rows = zip(
            batch.columns.column("key").to_pylist(),
            batch.type_codes.tolist(),
            batch.time_us.tolist(),
            now_us.tolist(),
            strict=True,
        )
        for row, (key, code, time_us, newest_us) in enumerate(rows):
            if idle_us is not None:
                self.ruled_out.end_idle(key, newest_us - idle_us)
            if batch.type_names[code] == ENDED:
                continue
            for name in self.ruled_out.see(key, batch.type_names[code], time_us, inputs):
                found.setdefault(name, []).append(row)
            if ends[code]:
                self.ruled_out.end(key)
        return found

    def _closing(self, name: str, body: Mapping[str, Any], key: str, time_us: int) -> Event:
        identity = merged_id(body["number"], self._next(name), "")
        return Event(id=identity, type=body["alias"] + CLOSED, time_us=time_us, key=key, data={})

    def _next(self, name: str) -> int:
        self.counts[name] += 1
        return self.counts[name]

    def _merged(
        self, name: str, batch: EventBatch, finished: Sequence[int]
    ) -> tuple[str, Mapping[str, Any], int, EventBatch, Sequence[str]]:
        """The events that take part in one input, and behind those of some rows that their keys are finished."""
        version, body = self.running[name]
        ends = self.declaration.end_events if body["ends"] and body["path"] is None else ()
        is_part = np.array(
            [kind != ENDED and (not body["types"] or kind in body["types"]) for kind in batch.type_names], np.bool_
        )
        is_last = np.array([kind in body["last"] or kind in ends for kind in batch.type_names], np.bool_)
        rows = np.concatenate([np.flatnonzero((is_part | is_last)[batch.type_codes]), np.array(finished, np.intp)])
        marks = np.arange(len(rows)) >= len(rows) - len(finished)
        order = np.argsort(rows, kind="stable")  # of one row: the event, then that its key is finished
        rows, marks = rows[order], marks[order]
        chosen = batch.take(rows).columns
        codes = batch.type_codes[rows]
        types = [orjson.dumps(kind) for kind in batch.type_names]
        data, keys = chosen.column("data").to_pylist(), chosen.column("key").to_pylist()
        own = keys if body["path"] is None else [_key_at(one, body["path"]) for one in data]
        closed = body["alias"] + CLOSED
        names = [
            body["alias"] + (LAST if last else "") if part else closed
            for part, last in zip(is_part.tolist(), is_last.tolist(), strict=True)
        ]
        good = [place for place, key in enumerate(own) if key is not None]
        ids = chosen.column("id").to_pylist()
        is_here = body["path"] is None  # elsewhere events of one key meet that come from several shards
        merged = EventBatch.from_columns(
            [
                merged_id(body["number"], self._next(name) if is_here else 0, "" if marks[place] else ids[place])
                for place in good
            ],
            [closed if marks[place] else names[codes[place]] for place in good],
            batch.time_us[rows][good],
            [str(own[place]) for place in good],
            [b"{}" if marks[place] else merged_data(types[codes[place]], data[place]) for place in good],
        )
        return name, body, version, merged, [keys[place] for place in good]


def _key_at(data: bytes, path: Sequence[str]) -> str | None:
    value = orjson.loads(data)
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return key_of(value)
