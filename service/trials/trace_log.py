"""The last transaction of a key in the log: its events, and the patterns and constraints at its beginning.

A ``StreamRun`` needs this input, because a run begins with one transaction and known constraints. The log is read for
one key only, without matching. A ``ShardState`` would match the events of all keys, and keep none of the matched
events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from constraints import ConstraintSet, parse_constraints
from service.runtime import Stores
from service.settings import Limits
from service.stores import DerivedEventPages, RegisteredConstraints, RegisteredPattern
from streams import (
    RETRACTED,
    ConstraintsOn,
    Event,
    EventBatch,
    LogEntry,
    PatternOn,
    PatternPause,
    Punctuation,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
    decode_control,
    key_hash,
    parse_time,
    position_order,
)

PatternChange: TypeAlias = tuple[int, PatternOn | PatternPause]
"""A start or pause of a pattern, after the number of events of the transaction that are older."""


@dataclass(slots=True)
class SeenKey:
    """What the log records about one key, read in log order.

    Attributes:
        declared: The newest declaration so far.
        rule_ends: The event types by which the newest constraints end transactions.
        declarations: The declarations in force during the newest transaction, with the end events of constraints. Each
            has the number of older events of the transaction. Empty for a further key.
        events: The events of the newest transaction.
        starts: For each pattern, where its current version started and paused during the transaction, and the versions
            whose partial matches this version lets finish. Each record has the number of older events, plus 1 if the
            transaction was over.
        registered: The current version of each pattern, by name, with the time of its registration.
        earlier: The number of events in earlier transactions of the key.
        end: The record that ended the newest transaction without an event, if one did.
        newest_us: The newest event time of the stream in the shards that were read.
        rules: The constraint sets so far, oldest first. Each has the number of these events before it.
        positions: The position of the last entry that was read, by shard. Empty for a derived stream.
    """

    declared: StreamDeclaration
    rule_ends: frozenset[str] = frozenset()
    declarations: list[tuple[int, StreamDeclaration]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    starts: dict[str, list[PatternChange]] = field(default_factory=dict)
    registered: Mapping[str, tuple[PatternOn, int]] = field(default_factory=dict)
    earlier: int = 0
    is_over: bool = False
    end: TraceEnd | None = None
    newest_us: int | None = None
    rules: list[tuple[int, ConstraintsOn]] = field(default_factory=list)
    positions: dict[int, str] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def in_force(self) -> StreamDeclaration:
        """The newest declaration, with the end events of constraints."""
        return replace(self.declared, end_events=tuple(sorted(self.rule_ends.union(self.declared.end_events))))

    def begin_anew(self) -> None:
        self.earlier += len(self.events)
        self.events.clear()
        self.starts = {name: _at_beginning(records) for name, records in self.starts.items()}
        self.declarations = [(0, self.in_force)]
        self.rules = [(0, record) for _, record in self.rules[-1:]]
        self.is_over, self.end = False, None

    def see_time(self, time_us: int | None) -> None:
        """Advance the stream's event time to ``time_us``, unless it is None or in the past."""
        if time_us is not None:
            self.newest_us = time_us if self.newest_us is None else max(self.newest_us, time_us)

    def end_if_idle(self, lateness_us: int | None) -> None:
        """End the transaction if its idle timeout has passed."""
        if self.declarations and self.newest_us is not None:
            watermark_us, (_, declaration) = self.newest_us - (lateness_us or 0), self.declarations[-1]
            self.is_over = self.is_over or _is_idle(self.events, watermark_us, declaration.idle_timeout_us)

    def declare(self, declared: StreamDeclaration, rule_ends: frozenset[str], lateness_us: int | None) -> None:
        """Use the end events and the idle timeout of a new declaration, or of new constraints, from now on."""
        self.end_if_idle(lateness_us)
        self.declared, self.rule_ends = declared, rule_ends
        if not self.is_over:
            earlier = self.declarations if self.events else []
            self.declarations = [*earlier, (len(self.events), self.in_force)]
            self.end_if_idle(lateness_us)

    def start_or_pause(self, record: PatternOn | PatternPause, time_us: int) -> None:
        """Record where a version of a pattern starts or resumes, or that the pattern was paused, at ``time_us``."""
        place, records = len(self.events) + self.is_over, self.starts.get(record.name, [])
        if records[-1:] == [(place, record)]:  # which a former and a new shard of the key both have
            return
        if isinstance(record, PatternOn):
            is_known = record.start == "migrate" or record.version in versions_of(records)
            records = records if is_known else []
        elif not records and record.name in self.registered:  # its first start is not in the log
            start, registered_us = self.registered[record.name]
            records = [(0, start)] if registered_us <= time_us else []
        self.starts[record.name] = [*records, (place, record)]

    def records(self, name: str) -> list[PatternChange]:
        """Return the starts and pauses of a pattern until the end of the transaction.

        If the log has none, the pattern ran before.
        """
        records = self.starts.get(name) or [(0, self.registered[name][0])]
        return [(place, record) for place, record in records if place <= len(self.events)]

    def seen(self, name: str, version: int) -> int:
        """Return the number of events that a version of a pattern saw."""
        total, since = 0, len(self.events)
        for place, record in self.records(name):
            total += max(0, place - since)
            is_on = isinstance(record, PatternOn) and record.version == version
            since = place if is_on else len(self.events)
        return total + len(self.events) - since


def versions_of(records: Iterable[PatternChange]) -> set[int]:
    """Return the versions that start."""
    return {record.version for _, record in records if isinstance(record, PatternOn)}


def _at_beginning(records: Sequence[PatternChange]) -> list[PatternChange]:
    """Return the state of a pattern after ``records``, as the records with which a transaction begins."""
    starts = [record for _, record in records if isinstance(record, PatternOn)]
    state: list[PatternChange] = [(0, replace(start, start="fresh")) for start in starts[-1:]]
    return state + [(0, record) for _, record in records[-1:] if isinstance(record, PatternPause)]


class TraceLog:
    """Reads the last transaction of a key from the log or, if the stream is derived, from its list of events."""

    def __init__(self, stores: Stores, limits: Limits) -> None:
        self._stores = stores
        self._derived = DerivedEventPages(stores.client)
        self._limits = limits

    def read(
        self, declaration: StreamDeclaration, key: str, route: str = "", patterns: Sequence[RegisteredPattern] = ()
    ) -> SeenKey:
        """Read the last transaction of a correlation key, or of a value of the further key ``route``.

        ``patterns`` are the patterns whose starts are to be known.
        """
        trace = SeenKey(
            declared=declaration,
            registered={pattern.name: (pattern.fresh_start, pattern.registered_us) for pattern in patterns},
        )
        if declaration.derived:
            return self._read_derived(trace, declaration, key)
        since_ms = self._stores.registry.since_ms(declaration.name)
        entries: list[LogEntry] = []
        for shard in self._stores.log.layout.read().homes(key_hash(key)):
            shard_entries, is_whole = self._entries(shard, declaration.name, since_ms)
            trace.is_complete = trace.is_complete and is_whole
            if shard_entries:
                trace.positions[shard] = shard_entries[-1].position
            entries += shard_entries
        if not route:
            trace.declare(declaration, self._ends_before(declaration, entries), None)
        for entry in sorted(entries, key=lambda entry: position_order(entry.position)):
            _take(trace, entry, declaration, key, route)
        return trace

    def _read_derived(self, trace: SeenKey, declaration: StreamDeclaration, key: str) -> SeenKey:
        """Read the last transaction of a key from the events that are stored for a derived stream.

        These events are stored in blocks. The position of an event is that of its block.
        """
        stream, since_ms = declaration.name, self._stores.registry.since_ms(declaration.name)
        shard = self._stores.log.layout.read().homes(key_hash(key))[-1]
        controls, _ = self._entries(shard, stream, since_ms)
        listed = self._derived.of_stream(stream, since_ms)
        key_records = [(place, record) for place, record in listed.records if record["key"] == key]
        events = [_event(record) for _, record in key_records]
        hosts = {
            (feeder.stream, feeder.key, feeder.kind)
            for feeder in self._stores.registry.feeders()
            if feeder.into == stream
        }
        if len(hosts) > 1 or any(record["rekeyed"] for _, record in key_records):
            events.sort(key=lambda event: (event.time_us, event.type.endswith(RETRACTED), event.id))
        entries = [entry for entry in controls if entry.kind is not RecordKind.EVENTS]
        for (place, _), event in zip(key_records, events, strict=True):
            body = EventBatch.from_events([event]).to_bytes()
            block = place.partition(".")[0]
            entries.append(LogEntry(position=block, kind=RecordKind.EVENTS, stream=stream, body=body))
        trace.is_complete = listed.is_whole
        trace.declare(declaration, self._ends_before(declaration, controls), None)
        for entry in sorted(entries, key=lambda entry: position_order(entry.position)):
            _take(trace, entry, declaration, key)
        for report in self._stores.pipeline_status.shards():
            if report.shard == shard and stream in report.streams:
                trace.see_time(report.streams[stream].watermark_us)
        return trace

    def constraints(self, declaration: StreamDeclaration, trace: SeenKey) -> tuple[int | None, ConstraintSet | None]:
        """Return the version and the constraint set that applied when a transaction began.

        Both are None if the log shows no set.
        """
        initial = [record for place, record in trace.rules if place == 0]
        if initial:
            return initial[-1].version, parse_constraints(initial[-1].document).constraint_set
        versions = self._versions(declaration)
        if trace.rules:
            versions = [record for record in versions if record.version < trace.rules[0][1].version]
        return (
            (versions[-1].version, parse_constraints(versions[-1].document).constraint_set)
            if versions
            else (None, None)
        )

    def _entries(self, shard: int, stream: str, since_ms: int) -> tuple[list[LogEntry], bool]:
        """Return the newest entries of a stream in one shard, in log order, and whether these are all entries."""
        entries: list[LogEntry] = []
        for count, entry in enumerate(self._stores.log.newest_first(shard, since_ms)):
            if count == self._limits.trace_entries:
                return entries[::-1], False
            if entry.stream == stream:
                entries.append(entry)
        return entries[::-1], self._stores.log.is_whole(shard)

    def _ends_before(self, declaration: StreamDeclaration, entries: Sequence[LogEntry]) -> frozenset[str]:
        """Return the event types by which constraints ended transactions before the first set in ``entries``."""
        records = (
            decode_control(entry.kind, entry.body) for entry in entries if entry.kind is RecordKind.CONSTRAINTS_ON
        )
        first = min((record.version for record in records if isinstance(record, ConstraintsOn)), default=None)
        earlier = [record for record in self._versions(declaration) if first is None or record.version < first]
        return _ends(earlier[-1].document) if earlier else frozenset()

    def _versions(self, declaration: StreamDeclaration) -> Sequence[RegisteredConstraints]:
        registry = self._stores.registry
        has_any = registry.constraints.find(declaration.name) is not None
        return registry.constraints.versions(declaration.name) if has_any else []


def _take(trace: SeenKey, entry: LogEntry, declaration: StreamDeclaration, key: str, route: str = "") -> None:
    """Update the transaction of a key by one entry of the log. A transaction of a further key does not end."""
    if entry.kind is RecordKind.EVENTS:
        if entry.route == route:
            _take_events(trace, EventBatch.from_bytes(entry.body), key)
        return
    match decode_control(entry.kind, entry.body):
        case PatternOn() | PatternPause() as record:
            trace.end_if_idle(declaration.lateness_us)
            trace.start_or_pause(record, 1_000 * position_order(entry.position)[0])
        case Tick(time_us=time_us) if not declaration.derived:
            trace.see_time(time_us)
        case _ if route:
            pass
        case TraceEnd(key=ended) as end if ended == key and trace.events and not trace.is_over:
            trace.is_over, trace.end = True, end
        case Punctuation() as promise if key in promise.ended and trace.events and not trace.is_over:
            trace.is_over, trace.end = True, TraceEnd(key=key)
        case StreamOn(declared):
            trace.declare(declared, trace.rule_ends, declaration.lateness_us)
        case ConstraintsOn() as rules:
            trace.declare(trace.declared, _ends(rules.document), declaration.lateness_us)
            trace.rules.append((0 if trace.is_over else len(trace.events), rules))


def _take_events(trace: SeenKey, batch: EventBatch, key: str) -> None:
    if len(batch):
        trace.see_time(int(batch.time_us.max()))
    key_rows = batch.key_hashes == key_hash(key)
    if not key_rows.any():
        return
    for event in batch.take(key_rows.nonzero()[0]).to_events():
        if event.key != key:
            continue
        declaration = trace.declarations[-1][1] if trace.declarations else None
        if trace.is_over or (declaration and _is_idle(trace.events, event.time_us, declaration.idle_timeout_us)):
            trace.begin_anew()
        trace.events.append(event)
        trace.is_over = bool(trace.declarations) and event.type in trace.declarations[-1][1].end_events


def _event(record: Mapping[str, Any]) -> Event:
    time_us = parse_time(record["time"])
    return Event(id=record["id"], type=record["type"], time_us=time_us, key=record["key"], data=record["data"])


def _ends(document: object) -> frozenset[str]:
    return parse_constraints(document).constraint_set.trace_ends


def _is_idle(events: Sequence[Event], time_us: int, timeout_us: int | None) -> bool:
    return timeout_us is not None and bool(events) and time_us - events[-1].time_us >= timeout_us
