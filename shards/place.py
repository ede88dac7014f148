"""A place: one key of a stream within a shard, with its declaration, the order of its events, and its hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from shards.entries import Entry
from shards.errors import EventLate
from shards.metering import UNMETERED, Cost
from shards.operators import LATENESS, NO_OUTPUT, Host, KeyChoice, Kind, Observation, Origin, Output, Result
from shards.results import ANSWER, DEAD_LETTER
from shards.rows import dead_letter_body, row_id
from streams import (
    EARLIEST_US,
    Ask,
    AutoLateness,
    ConstraintsOn,
    ControlRecordError,
    Definition,
    EventBatch,
    ForestallError,
    KeysClosed,
    Lags,
    LatenessChange,
    Punctuation,
    ReorderBuffer,
    Start,
    StreamDeclaration,
    format_time,
    lateness_summary,
    shown_time,
)
from streams.tables import Tables

_READ = ("key", "keys", "ties", "derived")
_LATE = {"drop": "late_dropped", "dead_letter": "late_dead_lettered", "process": "late_processed"}
_SHOWN_CHARS = 4_000
_WAITING = "waiting"

Step: TypeAlias = tuple[Entry, Output]
"""An output, together with the last entry that contributed to it."""


@dataclass(frozen=True, slots=True)
class Answer(Output):
    """A place's answer to a question, or the reason why it has none.

    Attributes:
        found: JSON object with the member ``answer`` or ``error``.
    """

    asked: Ask
    found: Mapping[str, Any]

    def body(self, shard: int, position: str, stream: str) -> dict[str, Any]:
        """Return the answer as plain JSON, with the position at which it is exact."""
        return {"question": self.asked.id, "shard": shard, "position": position, "stream": stream, **self.found}

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield a result row with the answer of this shard."""
        identity = row_id(ANSWER, self.asked.id, origin.shard)
        yield ANSWER, identity, self.body(origin.shard, origin.entry.position, origin.entry.stream)


@dataclass(frozen=True, slots=True)
class LateEvent(Output):
    """The output for a late event that is dead-lettered."""

    event: EventBatch
    watermark_us: int

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield the event's dead letter."""
        (late,) = self.event.to_events()
        entry, due = origin.entry, shown_time(self.watermark_us)
        error = EventLate(
            f"event {late.id!r} of {format_time(late.time_us)} came late: events before {due} "
            "were not expected any more; a larger lateness of the stream waits longer, and late: process matches late "
            "events, too"
        )
        identity = row_id(DEAD_LETTER, entry.stream, entry.route, "late", late.id, late.key, late.time_us)
        event_members = {"id": late.id, "type": late.type, "time": format_time(late.time_us), "key": late.key}
        text = orjson.dumps({**event_members, "data": late.data}).decode()
        body = {
            **dead_letter_body(origin.shard, entry, error),
            "id": identity,
            "event": text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…",
            "watermark": due,
        }
        yield DEAD_LETTER, identity, body


class Place:
    """Where the events of a stream by one of its keys (``route``) arrive in a shard.

    The place sorts the events, and passes them to the hosts.

    Attributes:
        declaration: The newest declaration in the log.
        route: Name of the further key; empty for the correlation key.
        metering: Calls the hosts and may measure the calls; by default nothing is measured.
    """

    def __init__(
        self, declaration: StreamDeclaration, route: str, kinds: Mapping[str, Kind], hosts: Mapping[str, Host]
    ) -> None:
        self.declaration = declaration
        self.route = route
        self._kinds = kinds
        self._hosts = dict(hosts)
        self._lateness_us = declaration.lateness_us
        self._buffer = None if self._lateness_us is None else ReorderBuffer(self._lateness_us)
        self._change = 0  # number of the last change of a measured lateness
        self._lags = Lags()
        self._counts = dict.fromkeys(_LATE.values(), 0)
        self.metering = UNMETERED
        self._tables = Tables()

    @property
    def costs(self) -> dict[str, tuple[Cost, Collection[str]]]:
        """The cost and the operator names of each host that runs operators, by kind."""
        costs = {kind: (self.metering.cost(host), host.names) for kind, host in self._hosts.items() if host.names}
        return {kind: (cost, names) for kind, (cost, names) in costs.items() if cost is not None}

    @property
    def is_used(self) -> bool:
        """Whether any operator runs at the place."""
        return any(host.names for host in self._hosts.values())

    def runs(self, kind: str, name: str) -> bool:
        """Return whether the given operator runs at the place."""
        return kind in self._hosts and name in self._hosts[kind].names

    def host(self, kind: str) -> Host:
        """Return the host of a kind, and create it on first use."""
        if kind not in self._hosts:
            self._hosts[kind] = known_kind(kind, self._kinds).host(self.declaration, self.route)
            self._hosts[kind].use_tables(self._tables)
        return self._hosts[kind]

    def start(self, definition: Definition, start: Start) -> None:
        """Start an operator, and pass the stream's open traces and constraints to its host."""
        host = self.host(definition.kind)
        host.start(definition, start)
        for other_host in self._hosts.values():
            if (traces := other_host.traces) is not None:
                host.learn(traces.followed, traces.open_keys)

    def started(self, entry: Entry) -> Iterator[Step]:
        """Yield the output of hosts at the start of an operator, which may continue the state of another version."""
        for host in self._hosts.values():
            yield entry, host.started()

    def measures(self) -> dict[str, int | None]:
        """Return metrics of the hosts and of event time.

        The name of a host's metric begins with the kind of the host, unless every stream has such a host
        (``Kind.is_resident``). ``late_dropped``, ``late_dead_lettered`` and ``late_processed`` count late events so
        far. ``waiting`` counts events in the reorder buffer. ``watermark_us`` is the event time reached, or None before
        the first event. ``lateness_us`` is present if the lateness is measured.
        """
        buffer = self._buffer
        return {
            **{
                name if self._kinds[kind].is_resident else f"{kind}_{name}": number
                for kind, host in self._hosts.items()
                for name, number in host.measures().items()
            },
            **self._counts,
            "waiting": 0 if buffer is None else len(buffer),
            "watermark_us": self._newest_us if buffer is None else buffer.watermark_us,
            **({} if self._measured is None else {"lateness_us": self._lateness_us}),
        }

    @property
    def _measured(self) -> AutoLateness | None:
        lateness = self.declaration.lateness
        return lateness if isinstance(lateness, AutoLateness) else None

    def observed(self) -> Iterator[Observation]:
        """Yield the observations since the last call, for deciders.

        They are the observations of the hosts, and the lags of events if the lateness is measured.
        """
        rules, lags = self._measured, self._lags
        if rules is not None and self._lateness_us is not None and lags.events:
            summary = lateness_summary(rules, self._lateness_us, self._change, lags)
            yield Observation(stream=self.declaration.name, decider=LATENESS, summary=summary)
        self._lags = Lags()
        for host in self._hosts.values():
            yield from host.observed()

    @property
    def _newest_us(self) -> int | None:
        times = (host.newest_us for host in self._hosts.values())
        return max((newest_us for newest_us in times if newest_us is not None), default=None)

    def check(self, declaration: StreamDeclaration) -> None:
        """Raise an error if a declaration changes keys or ties, because open traces were read under the earlier one."""
        for name in _READ:
            if getattr(declaration, name) != getattr(self.declaration, name):
                raise ControlRecordError(
                    f"stream {declaration.name!r}: the {name} of a declared stream cannot change", field=name
                )

    def declare(self, entry: Entry, declaration: StreamDeclaration) -> Iterator[Step]:
        """Apply a later declaration that ``check`` has accepted. Waiting events are matched under it.

        The watermark never moves back. If the lateness increases, the watermark stops until time has advanced far
        enough. If there was no lateness before, the watermark starts at the newest time. If the lateness decreases or
        is removed, events that need not wait any longer are released.
        """
        if declaration == self.declaration:
            return
        before_us, lateness_us = self._lateness_us, self._lateness_under(declaration)
        self.declaration, self._lateness_us = declaration, lateness_us
        newest_us = self._newest_us
        for host in self._hosts.values():
            yield from self._step(entry, host.declare(declaration))
        if lateness_us == before_us:
            return
        if self._buffer is not None:
            yield from self._released(entry, self._buffer.set_lateness(lateness_us or 0))
        if lateness_us is None:
            self._buffer = None
        elif self._buffer is None:
            self._buffer = ReorderBuffer(lateness_us)
            if newest_us is not None:
                self._buffer.note_time(newest_us)
                self._buffer.advance(newest_us)

    def _lateness_under(self, declaration: StreamDeclaration) -> int | None:
        if isinstance(declaration.lateness, AutoLateness) and self._lateness_us is not None:
            return declaration.lateness.within_us(self._lateness_us)
        return declaration.lateness_us

    def change_lateness(self, entry: Entry, change: LatenessChange) -> Iterator[Step]:
        """Apply a lateness that a decider has chosen. If the stream declares a fixed lateness, do nothing."""
        self._change = change.number
        if self._measured is not None and self._buffer is not None:
            self._lateness_us = self._measured.within_us(change.bound_us)
            yield from self._released(entry, self._buffer.set_lateness(self._lateness_us))

    def begin_like(self, other: Place) -> None:
        """Copy the lateness of another place of the stream.

        The shard calls this on a new place, before its first event.
        """
        self._change, self._lateness_us = other._change, other._lateness_us
        self._buffer = None if self._lateness_us is None else ReorderBuffer(self._lateness_us)

    def follow(self, record: ConstraintsOn) -> None:
        """Follow these constraints in traces that begin from now on."""
        for host in self._hosts.values():
            host.follow(record)

    def use_tables(self, tables: Tables) -> None:
        self._tables = tables
        for host in self._hosts.values():
            host.use_tables(tables)

    def _with_tables(self, batch: EventBatch) -> EventBatch:
        return replace(batch, tables=self._tables) if self._tables.versions else batch

    @property
    def is_timed(self) -> bool:
        """Whether passing time has an effect on any host."""
        return self.declaration.idle_timeout is not None or any(host.waits_for_time for host in self._hosts.values())

    def process(
        self, entries: Sequence[Entry], batches: Sequence[EventBatch], *, is_timed: bool = False
    ) -> Iterator[Step]:
        """Sort the events of decoded batches, pass on the events that need not wait, and yield the steps.

        A step is an entry with the output that a host made for it. ``is_timed`` says whether passing time has an effect
        in streams derived from the events.
        """
        if self._buffer is None:
            for host in self._hosts.values():
                for last, batch in _in_order(batches, host.newest_us, is_timed=is_timed or host.waits_for_time):
                    yield from self._step(entries[last], self.metering.process(host, self._with_tables(batch)))
            return
        batch = EventBatch.joined(batches)
        if self._measured is not None and not self.route:  # measured once per event, at its correlation key
            self._lags.add(self._buffer.lags_us(batch.time_us), self._measured.at_most_us)
        late = self._buffer.is_late(batch.time_us)
        if late.any():
            yield from self._with_late(self._buffer, entries, batches, late)
        else:
            yield from self._released(entries[-1], self._buffer.push(batch))

    def is_in_order(self, batches: Sequence[EventBatch]) -> bool:
        """Return whether no event is late when these batches arrive one after another. There is at least one batch.

        Without a lateness, an event is late if it is older than an event of an earlier batch, or than the current time.
        """
        if self._buffer is not None:
            return not self._buffer.is_late(np.concatenate([batch.time_us for batch in batches])).any()
        return _is_rising(batches, self._newest_us)

    def tick(self, entry: Entry, time_us: int) -> Iterator[Step]:
        """Advance time to ``time_us`` less the lateness. ``time_us`` is from the clock or another shard's event."""
        if self._buffer is None:
            yield from self.advance_time(entry, time_us)
        else:
            yield from self._released(entry, self._buffer.note_time(time_us))

    def advance_time(self, entry: Entry, watermark_us: int) -> Iterator[Step]:
        """Advance time to the watermark. Waiting events up to it are released first, and then the hosts advance."""
        if self._buffer is None:
            for host in self._hosts.values():
                yield from self._step(entry, self.metering.advance_time(host, watermark_us))
        else:
            yield from self._released(entry, self._buffer.advance(watermark_us))

    def end_trace(self, entry: Entry, key: str, time_us: int | None) -> Iterator[Step]:
        """End the trace of a key at ``time_us``. None means the newest time.

        Events of the key that are still in the reorder buffer open another trace.
        """
        for host in self._hosts.values():
            yield from self._step(entry, host.end_trace(key, time_us))

    def finish_keys(self, entry: Entry, promise: Punctuation) -> Iterator[Step]:
        """Finish the keys in the range of a punctuation, in all hosts, and yield the steps."""
        for host in self._hosts.values():
            yield entry, host.finish_keys(promise)

    def close_keys(self, entry: Entry, record: KeysClosed) -> Iterator[Step]:
        """Finish the keys that a decider has closed, and yield the steps.

        Hosts turn the record into events, which the place then processes.
        """
        for host in self._hosts.values():
            batch = host.close_keys(record)
            if batch is None:
                continue
            if len(batch):
                yield from self.process([entry], [batch])
            if host.newest_us is not None:
                yield from self._step(entry, self.metering.advance_time(host, host.newest_us))

    def answer(self, record: Ask) -> Answer:
        """Return a host's answer to a question. The state of the host does not change."""
        host = self._hosts.get(record.operator)
        try:
            if host is None:
                raise ControlRecordError(f"no operators of the kind {record.operator!r} answer questions here")
            return Answer(record, {"answer": host.answer(record.question)})
        except ForestallError as error:
            return Answer(record, {"error": {**error.details, "code": error.code, "message": error.message}})

    def drain(self, entry: Entry) -> Iterator[Step]:
        """Release all events in the reorder buffer, because a finite input has ended, and yield the steps."""
        if self._buffer is not None:
            yield from self._released(entry, self._buffer.drain())

    def finish(self, entry: Entry, end_us: int | None = None) -> Iterator[Step]:
        """Finish a finite input after ``drain``. Only places of derived streams use ``end_us``."""
        for host in self._hosts.values():
            yield from self._step(entry, host.finish())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Keep the state of the chosen keys, and drop all other state, as ``Host.keep`` does."""
        for host in self._hosts.values():
            host.keep(is_kept, has_counts=has_counts)
        if self._buffer is not None:
            self._buffer.keep(is_kept(self._buffer.key_hashes))
        if not has_counts:
            self._counts = dict.fromkeys(_LATE.values(), 0)

    @property
    def spilling(self) -> list[Host]:
        """The hosts that store a part of their state in files."""
        return [host for host in self._hosts.values() if host.files]

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the state as a JSON object and sections. The sections are by name."""
        saved = {kind: host.dump() for kind, host in self._hosts.items()}
        head: dict[str, Any] = {
            "declaration": self.declaration.to_json(),
            "route": self.route,
            "late": self._counts,
            "hosts": {kind: dict(host.head) for kind, host in saved.items()},
        }
        if self._measured is not None or self._change:
            head["lateness"] = {"us": self._lateness_us, "change": self._change}
        sections = {f"{kind}/{name}": body for kind, host in saved.items() for name, body in host.sections.items()}
        if self._buffer is not None:
            head["order"], sections[_WAITING] = self._buffer.dump()
        return head, sections

    def restore(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Restore the state of the place that ``dump`` returned. The hosts are loaded before."""
        self._counts.update(head["late"])
        if (lateness := head.get("lateness")) is not None:
            self._lateness_us, self._change = lateness["us"], lateness["change"]
            self._buffer = None if self._lateness_us is None else ReorderBuffer(self._lateness_us)
        if self._buffer is not None:
            self._buffer.load(head["order"], sections[_WAITING])

    def _step(self, entry: Entry, output: Output) -> Iterator[Step]:
        yield entry, output
        for host in self._hosts.values() if output is not NO_OUTPUT else ():
            if (heard := host.hear(output)) is not NO_OUTPUT:
                yield entry, heard

    def _released(self, entry: Entry, batch: EventBatch) -> Iterator[Step]:
        watermark_us = None if self._buffer is None else self._buffer.watermark_us
        for host in self._hosts.values():
            if len(batch):
                yield from self._step(entry, self.metering.process(host, self._with_tables(batch)))
            newest_us = host.newest_us
            if watermark_us is not None and (newest_us is None or watermark_us > newest_us):
                yield from self._step(entry, self.metering.advance_time(host, watermark_us))

    def _with_late(
        self, buffer: ReorderBuffer, entries: Sequence[Entry], batches: Sequence[EventBatch], late: NDArray[np.bool_]
    ) -> Iterator[Step]:
        policy = self.declaration.late
        batch, rows = EventBatch.joined(batches), np.flatnonzero(late)
        owners = np.repeat(np.arange(len(batches)), [len(part) for part in batches])
        self._counts[_LATE[policy]] += len(rows)
        if policy != "process":
            if policy == "dead_letter":
                watermarks_us = buffer.watermarks_us(batch.time_us)
                for row, owner in zip(rows.tolist(), owners[rows].tolist(), strict=True):
                    yield entries[owner], LateEvent(batch.slice(row, 1), int(watermarks_us[row]))
            yield from self._released(entries[-1], buffer.push(batch.take(np.flatnonzero(~late))))
            return
        first = 0
        for row in rows.tolist():
            entry = entries[owners[row]]
            yield from self._released(entry, buffer.push(batch.slice(first, row - first)))
            for host in self._hosts.values():
                yield from self._step(entry, self.metering.process(host, self._with_tables(batch.slice(row, 1))))
            first = row + 1
        yield from self._released(entries[-1], buffer.push(batch.slice(first)))


def known_kind(kind: str, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind with a name. A kind that this release does not know is refused."""
    if kind not in kinds:
        raise ControlRecordError(
            f"no operators of the kind {kind!r} exist in this release; it knows {', '.join(sorted(kinds))}", kind=kind
        )
    return kinds[kind]


def _in_order(
    batches: Sequence[EventBatch], newest_us: int | None, *, is_timed: bool
) -> Iterator[tuple[int, EventBatch]]:
    """Join consecutive batches. Yield each joined batch with the index of the last input batch that it contains.

    The hosts see time advance only at the end of a joined batch. If passing time has an effect (``is_timed``), a batch
    with an event older than the newest so far begins a new joined batch.
    """
    first = 0
    for number, batch in enumerate(batches):
        times_us = batch.time_us
        if not len(times_us):
            continue
        if number > first and is_timed and newest_us is not None and times_us.min() < newest_us:
            yield number - 1, EventBatch.joined(batches[first:number])
            first = number
        newest_us = int(times_us.max()) if newest_us is None else max(newest_us, int(times_us.max()))
    yield len(batches) - 1, EventBatch.joined(batches[first:])


def _is_rising(batches: Sequence[EventBatch], newest_us: int | None) -> bool:
    """Return whether no event is older than ``newest_us`` or than an event of an earlier batch. No batch is empty."""
    newest = EARLIEST_US if newest_us is None else newest_us
    lasts_us = np.maximum.accumulate([newest, *(batch.time_us.max() for batch in batches)])
    return all(bool((batch.time_us >= last_us).all()) for batch, last_us in zip(batches, lasts_us, strict=False))
