"""The last transaction of a key in the log: its events, and the patterns and constraints at its beginning.

A ``StreamRun`` needs this input, because a run begins with one transaction and known constraints. The log is read for
one key only, without matching. A ``ShardState`` would match the events of all keys, and keep none of the matched
events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(slots=True)
class SeenKey:
    """What the log records about one key, read in log order.

    Attributes:
        events: The events of the newest transaction.
        starts: For each start of a pattern, how many of these events are older, by the pattern's name and version. A
            pattern that was paused has several starts.
        migrated: The versions that started with ``migrate`` during the transaction.
        registered_us: When the current version of each pattern was registered, by its name and version.
        paused_us: When each pattern was last paused, by its name.
        earlier: The number of events in earlier transactions of the key.
        ends: The event types that end a transaction, as declared so far.
        newest_us: The newest event time of the stream in the shards that were read.
        idle_timeout_us: The longest time of a transaction without an event, as declared so far.
        declared: The newest declaration so far.
        rules: The constraint sets so far, oldest first. Each has the number of these events before it.
        positions: The position of the last entry that was read, by shard. Empty for a derived stream.
    """

    events: list[Event] = field(default_factory=list)
    starts: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    migrated: set[tuple[str, int]] = field(default_factory=set)
    registered_us: Mapping[tuple[str, int], int] = field(default_factory=dict)
    paused_us: dict[str, int] = field(default_factory=dict)
    earlier: int = 0
    ends: frozenset[str] = frozenset()
    is_over: bool = False
    newest_us: int | None = None
    idle_timeout_us: int | None = None
    declared: StreamDeclaration | None = None
    rules: list[tuple[int, ConstraintsOn]] = field(default_factory=list)
    positions: dict[int, str] = field(default_factory=dict)
    is_complete: bool = True

    def begin_anew(self) -> None:
        self.earlier += len(self.events)
        self.events.clear()
        self.starts = {version: [0] for version in self.starts}
        self.migrated.clear()
        self.rules = [(0, record) for _, record in self.rules[-1:]]
        self.is_over = False

    def see_time(self, time_us: int | None) -> None:
        """Advance the stream's event time to ``time_us``, unless it is None or in the past."""
        if time_us is not None:
            self.newest_us = time_us if self.newest_us is None else max(self.newest_us, time_us)

    def declare(self, declared: StreamDeclaration) -> None:
        """Replace the end events and the idle timeout by those of a new declaration."""
        if self.declared is not None:
            self.ends = self.ends.difference(self.declared.end_events).union(declared.end_events)
        self.declared, self.idle_timeout_us = declared, declared.idle_timeout_us

    def start_or_pause(self, record: PatternOn | PatternPause, time_us: int) -> None:
        """Record where a version of a pattern starts or resumes, or that the pattern was paused, at ``time_us``."""
        if isinstance(record, PatternPause):
            self.paused_us[record.name] = time_us
            return
        version, names = (record.name, record.version), {name for name, _ in self.starts}
        was_paused = self.registered_us.get(version, 0) <= self.paused_us.get(record.name, -1)
        is_older = was_paused and record.name not in names  # its first start is not in the log
        self.starts.setdefault(version, [0] if is_older else []).append(len(self.events))
        if record.start == "migrate":
            self.migrated.add(version)
        elif not self.is_over:  # a pause has dropped the partial matches
            self.migrated.discard(version)

    def first(self, version: tuple[str, int], *, is_open: bool) -> int:
        """Return how many of the events are older than the current start of a pattern's version.

        If the transaction is over, starts after its last event do not count, unless there is no earlier one.
        """
        starts = self.starts.get(version, [0])
        if is_open:
            return starts[-1]
        return next((start for start in reversed(starts) if start < len(self.events)), starts[0])


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
            idle_timeout_us=None if route else declaration.idle_timeout_us,
            registered_us={(pattern.name, pattern.version): pattern.registered_us for pattern in patterns},
        )
        if declaration.derived:
            return self._read_derived(trace, declaration, key)
        since_ms = self._stores.registry.since_ms(declaration.name)
        for shard in self._stores.log.layout.read().homes(key_hash(key)):
            entries, is_whole = self._entries(shard, declaration.name, since_ms)
            trace.is_complete = trace.is_complete and is_whole
            if entries:
                trace.positions[shard] = entries[-1].position
            if not route:
                trace.ends = self._ends_before(declaration, entries)
            for entry in entries:
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
        trace.ends = self._ends_before(declaration, controls)
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
        """Return the event types that ended transactions before the first constraint set in ``entries``."""
        records = (
            decode_control(entry.kind, entry.body) for entry in entries if entry.kind is RecordKind.CONSTRAINTS_ON
        )
        first = next((record.version for record in records if isinstance(record, ConstraintsOn)), None)
        earlier = [record for record in self._versions(declaration) if first is None or record.version < first]
        return _ends(declaration, earlier[-1].document if earlier else None)

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
            trace.start_or_pause(record, 1_000 * position_order(entry.position)[0])
        case Tick(time_us=time_us) if not declaration.derived:
            trace.see_time(time_us)
        case _ if route:
            pass
        case TraceEnd(key=ended) if ended == key and trace.events:
            trace.is_over = True
        case Punctuation() as promise if key in promise.ended and trace.events:
            trace.is_over = True
        case StreamOn(declared):
            trace.declare(declared)
        case ConstraintsOn() as rules:
            trace.rules.append((0 if trace.is_over else len(trace.events), rules))
            trace.ends = _ends(declaration, rules.document)


def _take_events(trace: SeenKey, batch: EventBatch, key: str) -> None:
    if len(batch):
        trace.see_time(int(batch.time_us.max()))
    key_rows = batch.key_hashes == key_hash(key)
    if not key_rows.any():
        return
    for event in batch.take(key_rows.nonzero()[0]).to_events():
        if event.key != key:
            continue
        if trace.is_over or _is_idle(trace.events, event, trace.idle_timeout_us):
            trace.begin_anew()
        trace.events.append(event)
        trace.is_over = event.type in trace.ends


def _event(record: Mapping[str, Any]) -> Event:
    time_us = parse_time(record["time"])
    return Event(id=record["id"], type=record["type"], time_us=time_us, key=record["key"], data=record["data"])


def _ends(declaration: StreamDeclaration, document: object) -> frozenset[str]:
    rules = ConstraintSet() if document is None else parse_constraints(document).constraint_set
    return rules.trace_ends.union(declaration.end_events)


def _is_idle(events: Sequence[Event], event: Event, timeout_us: int | None) -> bool:
    return timeout_us is not None and bool(events) and event.time_us - events[-1].time_us >= timeout_us
