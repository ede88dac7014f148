"""Inputs of joins: operators that pass the events of a stream on to the joins that read the stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joins import (
    CLOSED,
    MARKS,
    REVOCABLE,
    UNKEYED,
    KeyMonitor,
    attributes_of,
    finished_range,
    input_name,
    keys_summary,
    merged_data,
    merged_id,
    merged_ids,
    merged_types,
    value_at,
)
from shards.hosts.trace_ends import TraceEnds
from shards.kinds.joins.rows import own_key, refused_letters
from shards.kinds.joins.ruled_out import RuledOut
from shards.kinds.joins.sources import WAIT, source_of
from shards.operators import NO_OUTPUT, Host, KeyChoice, Observation, Origin, Output, Result, SavedHost
from shards.rows import ResultRows
from streams import (
    EARLIEST_US,
    ENDED,
    RETRACTED,
    ConstraintsOn,
    ControlRecordError,
    Definition,
    Event,
    EventBatch,
    Punctuation,
    Start,
    StreamDeclaration,
    attribute_path,
    column_of,
    key_of,
    key_text,
    pieces_of,
    place_for,
    texts_of,
    whole_number,
    whole_numbers,
)

_CLOSING = np.int8(MARKS.index(CLOSED))
_RETRACTING = np.int8(MARKS.index(RETRACTED))
_REVOCABLE = np.int8(MARKS.index(REVOCABLE))  # the next mark is for the last event of a key
_UNKEYED = np.int8(MARKS.index(UNKEYED))
_NOTHING = np.int8(-1)  # mark of event types that the input ignores


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Events of one input in the form in which its join reads them: with the input's name and a mark in the type.

    Attributes:
        operator: Name and version of the input.
        into: The inner stream of the join's merged events.
        is_rekeyed: Whether the log carries the events to the shards of their keys.
        refused: Events that are not passed on because their keys are not whole numbers.
        key_path: The attribute with the key, such as ``data.order``. Empty for the correlation key.
    """

    operator: tuple[str, int]
    into: str
    is_rekeyed: bool
    events: EventBatch
    refused: EventBatch | None = None
    key_path: str = ""


@dataclass(frozen=True, slots=True)
class MergedOutput(Output):
    """The merged events of all join inputs at one place."""

    found: Iterable[Merged]

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Yield the merged events that keep their keys and so remain in their shard, by name of their stream."""
        return ((merged.into, merged.events) for merged in self.found if not merged.is_rekeyed and len(merged.events))

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield the re-keyed events, and a dead letter for each refused event."""
        for merged in self.found:
            if merged.refused is not None:
                yield from refused_letters(merged.refused, merged.operator, merged.key_path, origin)
            if merged.is_rekeyed and len(merged.events):
                yield ResultRows.rekeyed(merged.into, merged.events)


@dataclass(slots=True, eq=False)
class JoinInputHost(Host):
    """Host of the inputs of joins at one place.

    Attributes:
        route: Name of the further key by which the events arrive; empty for the correlation key.
        counts: For each input, the number of rows that were passed on within the shard. The next row gets this number.
        uncounted: For each input, the number of rows in ``counts`` that another shard reports. These rows were passed
            on before the shards were divided.
        ruled_out: The open traces of inputs that constraints finish (``closed_by: workflow``), or None without such
            inputs.
        monitors: For each input of a join with ``wait: auto``, its keys since the last observation.
        refused: For each input of such a join, the number of events whose keys are not whole numbers.
    """

    declaration: StreamDeclaration
    route: str = ""
    running: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    newest_us: int | None = None
    ruled_out: RuledOut | None = None
    monitors: dict[str, KeyMonitor] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    uncounted: dict[str, int] = field(default_factory=dict)
    trace_ends: TraceEnds = field(init=False)

    def __post_init__(self) -> None:
        self.trace_ends = TraceEnds(self.declaration, is_needed=self._ends_with_traces)

    @classmethod
    def of(cls, declaration: StreamDeclaration, route: str, saved: SavedHost | None) -> JoinInputHost:
        """Create a host without inputs, or load the saved host."""
        if saved is None:
            return cls(declaration, route)
        running = {name: (version, body) for name, version, body in saved.head["running"]}
        ruled_out = saved.head.get("ruled_out")
        host = cls(
            declaration,
            route,
            running,
            dict(saved.head["counts"]),
            saved.head["newest_us"],
            None if ruled_out is None else RuledOut.load(ruled_out, declaration.ties),
            monitors={name: KeyMonitor() for name, (_, body) in running.items() if body.get("wait")},
            refused=dict(saved.head.get("refused", {})),
            uncounted=dict(saved.head.get("uncounted", {})),
        )
        host.trace_ends = TraceEnds(declaration, saved.sections, is_needed=host._ends_with_traces)
        return host

    @property
    def names(self) -> Collection[str]:
        return self.running.keys()

    @property
    def waits_for_time(self) -> bool:
        return False

    def start(self, definition: Definition, start: Start) -> None:
        self.running[definition.name] = definition.version, definition.body
        self.counts.setdefault(definition.name, 0)
        self.monitors.pop(definition.name, None)
        if definition.body.get("wait"):
            self.monitors[definition.name] = KeyMonitor()
            self.refused.setdefault(definition.name, 0)
        self.trace_ends.declare(self.declaration, is_needed=self._ends_with_traces)
        if self.ruled_out is not None:
            self.ruled_out.restart(definition.name)

    def learn(self, followed: ConstraintsOn | None, open_keys: Callable[[], NDArray[np.uint64]]) -> None:
        """Start to follow the constraints of the stream, if an input needs them (``closed_by: workflow``).

        The first events of traces that are already open were not seen. So constraints finish no input in these traces.
        """
        if self.ruled_out is not None or not self._by_constraints:
            return
        self.ruled_out = RuledOut(self.declaration.ties, open_keys().tolist())
        if followed is not None:
            self.ruled_out.follow(followed)

    def stop(self, name: str) -> None:
        if name not in self.running:
            raise ControlRecordError(f"no input {name!r} of a join runs on the stream {self.declaration.name!r}")
        del self.running[name], self.counts[name]
        self.monitors.pop(name, None)
        self.refused.pop(name, None)
        self.uncounted.pop(name, None)
        if not self._by_constraints:
            self.ruled_out = None
        self.trace_ends.declare(self.declaration, is_needed=self._ends_with_traces)

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Apply the end events and the idle timeout of a changed declaration. Open traces may end, and finish keys."""
        self.declaration = declaration
        self.trace_ends.declare(self.declaration, is_needed=self._ends_with_traces)
        return NO_OUTPUT if self.newest_us is None else self.advance_time(self.newest_us)

    def follow(self, record: ConstraintsOn) -> None:
        if self.ruled_out is not None:
            self.ruled_out.follow(record)

    def process(self, batch: EventBatch) -> Output:
        if not len(batch):
            return NO_OUTPUT
        if not self._ends_with_traces:  # not in ``stop``, because a changed join stops its inputs and starts new ones
            self.trace_ends.stop()
        batch, now_us = self.trace_ends.marked(batch, self.newest_us)
        self.newest_us = int(now_us[-1])
        finished = self._finished(batch, now_us)
        return MergedOutput([self._merged(name, batch, finished.get(name, ())) for name in self.running])

    def advance_time(self, watermark_us: int) -> Output:
        """Advance time, and end traces that exceed the idle timeout. Return merged events that finish their keys."""
        self.newest_us = watermark_us if self.newest_us is None else max(self.newest_us, watermark_us)
        if self.ruled_out is not None and (idle_us := self.declaration.idle_timeout_us) is not None:
            self.ruled_out.pass_time(self.newest_us - idle_us)
        if (batch := self.trace_ends.pass_time(self.newest_us)) is None:
            return NO_OUTPUT
        return MergedOutput([self._merged(name, batch, ()) for name in self.running])

    def end_trace(self, key: str, time_us: int | None) -> Output:
        """End the trace of a key. Return merged events that finish the key.

        There is one for each input that is closed by ends of traces and not joined by another key.
        """
        if self.ruled_out is not None:
            self.ruled_out.end(key)
        self.trace_ends.end(key)
        when = self.newest_us if time_us is None else time_us
        if when is None:
            return NO_OUTPUT
        ended = [
            Merged(
                operator=(name, version),
                into=body["into"],
                is_rekeyed=False,
                events=EventBatch.from_events([self._closing(name, body, key, when)]),
            )
            for name, (version, body) in self.running.items()
            if body["ends"] and body["path"] is None and (name not in self.monitors or whole_number(key) is not None)
        ]
        return MergedOutput(ended)

    def finish_keys(self, promise: Punctuation) -> Output:
        """Finish the keys in a punctuation's range, in inputs that are closed by ends of traces or by punctuations.

        Every shard finishes the range on its own. Earlier events that are still on their way from another shard count
        nevertheless, because the join sorts its merged events by time.
        """
        source, path = source_of(self.declaration.name, promise.by or None, self.declaration)
        if promise.range is None or source.key != self.route:
            return NO_OUTPUT
        when_us = self.newest_us if promise.time_us is None else promise.time_us
        finished = [
            Merged(
                operator=(name, version),
                into=body["into"],
                is_rekeyed=False,
                events=finished_range(
                    body["number"], _name_of(body), promise.range, EARLIEST_US if when_us is None else when_us
                ),
            )
            for name, (version, body) in self.running.items()
            if body["ends"] and body["path"] == path
        ]
        return MergedOutput(finished)

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        if self.ruled_out is not None:
            self.ruled_out.keep(is_kept)
        self.trace_ends.keep(is_kept)
        if not has_counts:
            self.uncounted = dict(self.counts)
            self.refused = dict.fromkeys(self.refused, 0)

    def measures(self) -> Mapping[str, int]:
        """Return two counts: rows passed on within the shard, and events whose keys are not whole numbers."""
        refused = {"refused": sum(self.refused.values())} if self.refused else {}
        return {"handed_on": sum(self.counts.values()) - sum(self.uncounted.values()), **refused}

    def observed(self) -> Iterator[Observation]:
        for name, monitor in self.monitors.items():
            version, body = self.running[name]
            if chunks := monitor.take_chunks():
                summary = keys_summary(version, body["alias"], chunks, self.newest_us, body.get("reading", ""))
                yield Observation(stream=body["into"], decider=WAIT, summary=summary)

    def dump(self) -> SavedHost:
        running = [[name, version, body] for name, (version, body) in self.running.items()]
        head: dict[str, Any] = {"running": running, "counts": self.counts, "newest_us": self.newest_us}
        if self.ruled_out is not None:
            head["ruled_out"] = self.ruled_out.dump()
        if self.refused:
            head["refused"] = self.refused
        if self.uncounted:
            head["uncounted"] = self.uncounted
        return SavedHost(head=head, sections=self.trace_ends.dump())

    @property
    def _ends_with_traces(self) -> bool:
        return any(body["ends"] and body["path"] is None for _, body in self.running.values())

    @property
    def _by_constraints(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(body["types"]) for name, (_, body) in self.running.items() if body.get("workflow")}

    def _finished(self, batch: EventBatch, now_us: NDArray[np.int64]) -> dict[str, list[int]]:
        """Return the rows after which constraints forbid an input's events in the row's trace, grouped by input.

        ``now_us`` is the newest event time up to each row.
        """
        finished_rows: dict[str, list[int]] = {}
        if self.ruled_out is None:
            return finished_rows
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
                finished_rows.setdefault(name, []).append(row)
            if ends[code]:
                self.ruled_out.end(key)
        return finished_rows

    def _closing(self, name: str, body: Mapping[str, Any], key: str, time_us: int) -> Event:
        identity = merged_id(body["number"], self._next(name), "")
        return Event(id=identity, type=_name_of(body) + CLOSED, time_us=time_us, key=key, data={})

    def _next(self, name: str) -> int:
        self.counts[name] += 1
        return self.counts[name]

    def _merged(self, name: str, batch: EventBatch, finished: Sequence[int]) -> Merged:
        version, body = self.running[name]
        if "keyless" in body:
            batch = _without_key(body, batch)
        is_here = body["path"] is None  # otherwise the events of one key come from several shards
        ends = (*self.declaration.end_events, ENDED) if body["ends"] and is_here else ()
        of_types = np.array([_mark_of(kind, body, ends) for kind in batch.type_names], np.int8)
        rows = np.concatenate([np.flatnonzero((of_types != _NOTHING)[batch.type_codes]), np.array(finished, np.intp)])
        is_closing = np.arange(len(rows)) >= len(rows) - len(finished)
        order = np.argsort(rows, kind="stable")  # within a row, the event precedes the end of its key
        marks = of_types[batch.type_codes[rows[order]]]
        marks[is_closing[order]] = _CLOSING
        input_events, is_closing = batch.take(rows[order]), is_closing[order]
        refused = None
        if not is_here:
            is_event = ~np.isin(marks, (_CLOSING, _RETRACTING))
            input_events, rows, is_unkeyed = _keyed_by(body["path"], input_events, is_event, body["alias"])
            marks, is_closing = marks[rows], is_closing[rows]
            marks[is_unkeyed] = _UNKEYED
        if "keyless" in body:
            marks[:] = _UNKEYED
        if name in self.monitors:
            rows, refused = self._watched(name, input_events, marks)
            input_events, marks, is_closing = input_events.take(rows), marks[rows], is_closing[rows]
        places = _tie_orders(input_events, marks)
        if is_here:
            places = self.counts[name] + 1 + np.arange(len(input_events), dtype=np.uint64)
            self.counts[name] += len(input_events)
        ids, data = input_events.columns.column("id"), input_events.columns.column("data")
        data = merged_data(input_events.type_names, input_events.type_codes, data)
        if is_closing.any():
            ids, data = (_replaced(pieces, is_closing, by) for pieces, by in ((ids, b""), (data, b"{}")))
        events = EventBatch.of_hashed(
            merged_ids(body["number"], places, ids),
            merged_types(_name_of(body), marks),
            input_events.time_us,
            (input_events.columns.column("key"), input_events.key_hashes),
            data,
        )
        return Merged(
            operator=(name, version),
            into=body["into"],
            is_rekeyed=not is_here,
            events=events,
            refused=None if body.get("silent") else refused,
            key_path=_key_path(body),
        )

    def _watched(
        self, name: str, batch: EventBatch, marks: NDArray[np.int8]
    ) -> tuple[NDArray[np.intp], EventBatch | None]:
        """Count the keys of an input's rows for the decider, in a join with ``wait: auto``. Return the rows to pass on.

        These are the rows whose keys are whole numbers. The end of an idle trace is passed on too, although it lacks
        the text of its key. The second result has the refused events, or is None.
        """
        is_event = ~np.isin(marks, (_CLOSING, _RETRACTING))
        is_whole, keys = whole_numbers(batch.columns.column("key"))
        is_seen = is_whole & is_event
        self.monitors[name].add(batch.time_us[is_seen], keys[is_seen])
        unusable_rows = np.flatnonzero(is_event & ~is_whole)
        self.refused[name] += len(unusable_rows)
        is_bare = (marks == _CLOSING) & batch.lacks_key_text
        return np.flatnonzero(is_whole | is_bare), batch.take(unusable_rows) if len(unusable_rows) else None


def _key_path(body: Mapping[str, Any]) -> str:
    if "keyless" in body:
        return key_text(body["keyless"])
    return "" if body["path"] is None else ".".join(["data", *body["path"]])


def _name_of(body: Mapping[str, Any]) -> str:
    """Return the name of an input as it occurs in merged event types: its alias and its ``reading``.

    ``reading`` is a hash of how events are read. Inputs saved by earlier releases have none.
    """
    return input_name(body["alias"], body.get("reading", ""))


def _mark_of(event_type: str, body: Mapping[str, Any], ends: Sequence[str]) -> np.int8:
    """Return the mark (an index into ``MARKS``) for an input's events of a type, or ``_NOTHING`` to ignore them."""
    if _takes_back(event_type, body):
        return _RETRACTING
    is_last = event_type in body["last"] or event_type in ends
    if event_type == ENDED or (body["types"] and event_type not in body["types"]):
        return _CLOSING if is_last else _NOTHING
    return np.int8((_REVOCABLE if body.get("retracts") else 0) + is_last)


def _takes_back(event_type: str, body: Mapping[str, Any]) -> bool:
    """Return whether events of a type retract events of an input. They never do if the input lists the type itself."""
    retracted = event_type.removesuffix(RETRACTED)
    if not body.get("retracts") or retracted == event_type or event_type in body["types"]:
        return False
    return not body["types"] or retracted in body["types"]


def _replaced(pieces: pa.Array, is_other: NDArray[np.bool_], by: bytes) -> pa.Array:
    return pc.if_else(column_of(is_other), pieces_of([by], pieces.type)[0], pieces)


def _keyed_by(
    path: Sequence[str], batch: EventBatch, is_event: NDArray[np.bool_], alias: str
) -> tuple[EventBatch, NDArray[np.intp], NDArray[np.bool_]]:
    """Re-key rows by the value at a path. Return the rows, their indices in ``batch``, and a mask of unusable values.

    An event (``is_event``) without a usable key gets a key of its own, which contains the input's ``alias``. Other rows
    without a usable key are dropped.
    """
    columns = batch.columns
    attributes = [attributes_of(text) for text in columns.column("data").to_pylist()]
    keys = [key_of(value_at(event_attributes, path)) for event_attributes in attributes]
    is_unkeyed = is_event & np.array([key is None for key in keys], np.bool_)
    for row in np.flatnonzero(is_unkeyed).tolist():
        keys[row] = own_key(alias, columns.column("id")[row].as_py())
    rows = np.array([row for row, key in enumerate(keys) if key is not None], np.intp)
    keyed = _with_keys(batch, rows, [key for key in keys if key is not None])
    return keyed, rows, is_unkeyed[rows]


def _without_key(body: Mapping[str, Any], batch: EventBatch) -> EventBatch:
    """Return the events of an input whose further key has no usable value.

    Each of these events gets a key of its own, and remains in the shard of its correlation key.
    """
    path = attribute_path(body["keyless"])
    places = [None if _mark_of(kind, body, ()) == _NOTHING else place_for(path, kind) for kind in batch.type_names]
    data, keyless_rows = batch.columns.column("data"), list[int]()
    for row, code in enumerate(batch.type_codes.tolist()):
        place = places[code]
        if place is not None and key_of(value_at(orjson.loads(data[row].as_py()), place)) is None:
            keyless_rows.append(row)
    rows = np.array(keyless_rows, np.intp)
    ids = batch.columns.column("id").take(column_of(rows)).to_pylist()
    return _with_keys(batch, rows, [own_key(body["alias"], event_id) for event_id in ids])


def _with_keys(batch: EventBatch, rows: NDArray[np.intp], keys: Sequence[str]) -> EventBatch:
    columns = batch.columns.take(column_of(rows))
    keyed = EventBatch.of_columns(
        columns.column("id"), columns.column("type"), batch.time_us[rows], texts_of(keys), columns.column("data")
    )
    return replace(keyed, arrivals=None if batch.arrivals is None else batch.arrivals[rows])


def _tie_orders(batch: EventBatch, marks: NDArray[np.int8]) -> NDArray[np.uint64]:
    """Return the number of each event by which re-keyed events of equal time are sorted.

    In posted streams, it is the arrival number. In derived streams, it is 1 for retractions and 0 for other events.
    """
    if batch.arrivals is not None:
        return batch.arrivals.astype(np.uint64)
    is_retraction: NDArray[np.bool_] = marks == _RETRACTING
    return is_retraction.astype(np.uint64)
