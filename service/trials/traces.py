"""One transaction as the log has it: what was seen, what the patterns make of it, what is still possible.

The pipeline's own state is in its workers, but the log is what that state is a function of. So the events of one key
are read from the log and matched again, in this process, with the patterns and constraints of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from constraints import ConstraintSet, parse_constraints
from nfa import Pattern, Prune, parse_pattern
from service.errors import TraceTooLong, UnknownConstraints, UnknownTrace
from service.observing.measured_lateness import as_in_force
from service.registering.routing import route_of
from service.runtime import Stores
from service.settings import Limits
from service.stores import LogTail, RegisteredConstraints, RegisteredPattern
from service.trials.broken import BrokenMatch, broken_matches
from service.trials.matching import SECTIONS, DeviatingTrace, EndedPair, MatchOptions, MatchReport, match_events
from streams import (
    ConstraintsOn,
    Event,
    EventBatch,
    LogEntry,
    PatternOn,
    Punctuation,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    TraceEnd,
    decode_control,
    key_hash,
)

TraceState: TypeAlias = Literal["alive", "waiting", "ended", "closed", "paused", "suspended", "other-key"]

_SHOWN_EVENTS = 200
_SHOWN_MATCHES = 20
_MOST_EVENTS = 5_000
_MOST_TYPES = 50
_MOST_COPIED = 50_000
_NEXT = "\x00next"  # no event has such an id


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternInTrace:
    """The state of a pattern in a transaction.

    Attributes:
        name: Of the pattern.
        version: Of the pattern.
        state: ``alive``: it holds partial matches; ``waiting``: it has bound nothing and may still match; ``ended``: it
            can no longer match; ``closed``: the transaction is over; ``paused``, ``suspended``: it sees nothing;
            ``other-key``: it is
            matched by a further key, which a transaction does not have.
        matches: Event ids by alias, of the newest matches.
        matched: How many matches there are.
        partial_matches: How many (pattern, instance) pairs are bound in partial matches.
        ended: Why it can no longer match.
        broken: How its last partial match ended without a match, where it holds none.
    """

    name: str
    version: int
    state: TraceState
    matches: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    matched: int = 0
    partial_matches: int = 0
    ended: EndedPair | None = None
    broken: BrokenMatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextType:
    """What an event of a type would mean for a transaction, by its type alone.

    Attributes:
        event_type: The type.
        breaks: Why it would break the constraints; None where it may come.
        ends: The patterns that it would end, each with the reason.
    """

    event_type: str
    breaks: str | None
    ends: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """What is known of a transaction.

    Attributes:
        stream: Its stream.
        key: Its correlation key.
        positions: By shard, up to which entry of the log this holds.
        is_complete: Whether all of the log is there to say so; else its beginning may be missing.
        is_open: Whether the transaction is still open, according to the log.
        earlier_events: Events of transactions of that key that were over before it.
        total: How many events it has.
        events: The newest of them, oldest first.
        patterns: By name.
        deviation: The event by which it broke the constraints.
        following: What may come, by type; empty where it is over or has broken the constraints.
        constraints_version: Of the set that it follows; None where there is none.
    """

    stream: str
    key: str
    positions: Mapping[int, str]
    is_complete: bool
    is_open: bool
    earlier_events: int
    total: int
    events: tuple[Event, ...]
    patterns: tuple[PatternInTrace, ...]
    deviation: DeviatingTrace | None
    following: tuple[NextType, ...]
    constraints_version: int | None


@dataclass(slots=True)
class _Seen:
    """What the log says about one key, in its order.

    Attributes:
        events: Of the transaction that is the last one so far.
        starts: Of each pattern's version, how many events of the transaction came before it.
        ends: Types that end a transaction, as far as the log says so far.
        is_over: Whether the transaction has ended.
        newest_us: The newest time of the stream in these shards.
        idle_timeout_us: How long a transaction may be without an event, as far as the log says so far.
        declared: The declaration that the log brought last.
        rules: The constraints that the log brings, newest last, each with the number of events before it.
    """

    events: list[Event] = field(default_factory=list)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    earlier: int = 0
    ends: frozenset[str] = frozenset()
    is_over: bool = False
    newest_us: int | None = None
    idle_timeout_us: int | None = None
    declared: StreamDeclaration | None = None
    rules: list[tuple[int, ConstraintsOn]] = field(default_factory=list)

    def begin_anew(self) -> None:
        """The next event is that of another transaction."""
        self.earlier += len(self.events)
        self.events.clear()
        self.starts = dict.fromkeys(self.starts, 0)
        self.rules = [(0, record) for _, record in self.rules[-1:]]
        self.is_over = False


class Traces:
    """Looks at transactions.

    Args:
        stores: Where the log and the registry are.
        limits: How much of the log is read.
    """

    def __init__(self, stores: Stores, limits: Limits) -> None:
        self._stores = stores
        self._tail = LogTail(stores.client)
        self._limits = limits

    def look(self, stream: str, key: str) -> TraceReport:
        """What is known of the last transaction of a key.

        Raises:
            UnknownStream: The stream is not declared.
            UnknownTrace: The log holds no event of that key.
            TraceTooLong: The transaction has more events than are matched again.
        """
        declaration = as_in_force(self._stores, self._stores.registry.stream(stream))
        since_ms = self._stores.registry.since_ms(stream)
        hashed = key_hash(key)
        seen, positions, is_complete = _Seen(idle_timeout_us=declaration.idle_timeout_us), {}, True
        for shard in self._stores.log.layout.read().homes(hashed):
            entries, is_whole = self._entries(shard, stream, since_ms)
            seen.ends = self._ends_before(declaration, entries)
            is_complete = is_complete and is_whole
            if entries:
                positions[shard] = entries[-1].position
            for entry in entries:
                _take(seen, entry, declaration, key, hashed)
        if not seen.events:
            raise UnknownTrace(f"the log has no event of the transaction {key!r} of {stream!r}", key=key)
        if len(seen.events) > _MOST_EVENTS:
            raise TraceTooLong(
                f"the transaction {key!r} has {len(seen.events)} events in the log, and at most {_MOST_EVENTS} are "
                "replayed; GET /v1/alerts?key= lists its alerts",
                limit=_MOST_EVENTS,
            )
        version, constraint_set = self._constraints(declaration, seen)
        return _Look(declaration, seen, constraint_set).report(
            [pattern for pattern in self._stores.registry.patterns(stream) if pattern.is_running],
            TraceReport(
                stream=stream,
                key=key,
                positions=positions,
                is_complete=is_complete,
                is_open=not seen.is_over,
                earlier_events=seen.earlier,
                total=len(seen.events),
                events=tuple(seen.events[-_SHOWN_EVENTS:]),
                patterns=(),
                deviation=None,
                following=(),
                constraints_version=version,
            ),
        )

    def _entries(self, shard: int, stream: str, since_ms: int) -> tuple[list[LogEntry], bool]:
        """Entries about a stream in the order of the log, and whether these are all that there ever were."""
        found: list[LogEntry] = []
        for read, entry in enumerate(self._tail.newest_first(shard, since_ms)):
            if read == self._limits.trace_entries:
                return found[::-1], False
            if entry.stream == stream:
                found.append(entry)
        return found[::-1], self._tail.is_whole(shard)

    def _ends_before(self, declaration: StreamDeclaration, entries: Sequence[LogEntry]) -> frozenset[str]:
        """Types that ended a transaction before some entries: declared ones, and those of constraints then in force."""
        records = (decode_control(one.kind, one.body) for one in entries if one.kind is RecordKind.CONSTRAINTS_ON)
        first = next((record.version for record in records if isinstance(record, ConstraintsOn)), None)
        known = [record for record in self._versions(declaration) if first is None or record.version < first]
        return _ends(declaration, known[-1].document if known else None)

    def _constraints(self, declaration: StreamDeclaration, seen: _Seen) -> tuple[int | None, ConstraintSet | None]:
        """What the transaction keeps to: the set that was there when it began, as far as that can be known."""
        before = [record for place, record in seen.rules if place == 0]
        if before:
            return before[-1].version, parse_constraints(before[-1].document).constraint_set
        known = self._versions(declaration)
        if seen.rules:
            known = [record for record in known if record.version < seen.rules[0][1].version]
        return (known[-1].version, parse_constraints(known[-1].document).constraint_set) if known else (None, None)

    def _versions(self, declaration: StreamDeclaration) -> Sequence[RegisteredConstraints]:
        """The constraint sets of a stream, the oldest first; none where it has none."""
        try:
            return self._stores.registry.constraint_versions(declaration.name)
        except UnknownConstraints:
            return []


def _take(seen: _Seen, entry: LogEntry, declaration: StreamDeclaration, key: str, hashed: int) -> None:
    """Note what an entry says about a key."""
    if entry.kind is RecordKind.EVENTS:
        if not entry.route:
            _take_events(seen, EventBatch.from_bytes(entry.body), key, hashed)
        return
    match decode_control(entry.kind, entry.body):
        case TraceEnd(key=ended) if ended == key and seen.events:
            seen.is_over = True
        case Punctuation() as promise if key in promise.ended and seen.events:
            seen.is_over = True
        case PatternOn() as record if record.start == "fresh":
            seen.starts[record.name, record.version] = 0 if seen.is_over else len(seen.events)
        case StreamOn(declared):
            if seen.declared is not None:
                seen.ends = seen.ends.difference(seen.declared.end_events).union(declared.end_events)
            seen.declared, seen.idle_timeout_us = declared, declared.idle_timeout_us
        case ConstraintsOn() as rules:
            seen.rules.append((0 if seen.is_over else len(seen.events), rules))
            seen.ends = _ends(declaration, rules.document)
        case _:
            pass


def _take_events(seen: _Seen, batch: EventBatch, key: str, hashed: int) -> None:
    if len(batch):
        newest_us = int(batch.time_us.max())
        seen.newest_us = newest_us if seen.newest_us is None else max(seen.newest_us, newest_us)
    own = batch.key_hashes == hashed
    if not own.any():
        return
    for event in batch.take(own.nonzero()[0]).to_events():
        if event.key != key:
            continue
        if seen.is_over or _is_idle(seen.events, event, seen.idle_timeout_us):
            seen.begin_anew()
        seen.events.append(event)
        seen.is_over = event.type in seen.ends


def _ends(declaration: StreamDeclaration, document: object) -> frozenset[str]:
    """Types that end a transaction: those that are declared, and those of constraints, if any, that say so."""
    rules = ConstraintSet() if document is None else parse_constraints(document).constraint_set
    return rules.trace_ends.union(declaration.end_events)


def _is_idle(events: Sequence[Event], event: Event, timeout_us: int | None) -> bool:
    return timeout_us is not None and bool(events) and event.time_us - events[-1].time_us >= timeout_us


class _Look:
    """Matches the events of a transaction again."""

    def __init__(self, declaration: StreamDeclaration, seen: _Seen, constraint_set: ConstraintSet | None) -> None:
        self._declaration = declaration
        self._seen = seen
        self._ends = ConstraintSet(end_events=frozenset(declaration.end_events))
        self._constraint_set = self._ends if constraint_set is None else constraint_set
        self._options = replace(
            MatchOptions.of(declaration),
            sections=SECTIONS,
            is_open=True,
            end_events=seen.ends if seen.is_over else frozenset(declaration.end_events),
            now_us=seen.newest_us,
        )

    def report(self, patterns: Sequence[RegisteredPattern], report: TraceReport) -> TraceReport:
        """The report with what the patterns and the constraints make of the events."""
        plain = self._run([], self._seen.events)
        deviation = plain.deviations[0] if plain.deviations else None
        has_waiting = plain.stats.events < len(self._seen.events)  # for older ones, as the stream's lateness says
        is_open = report.is_open and (has_waiting or bool(plain.stats.open_traces))
        report = replace(report, is_open=is_open, deviation=deviation)
        found = self._with_broken([self._pattern(pattern, report) for pattern in patterns], patterns)
        following: tuple[NextType, ...] = ()
        if is_open and deviation is None:
            running = [pattern for pattern in found if pattern.state in ("alive", "waiting")]
            named = {pattern.name for pattern in running}
            guarded = [parse_pattern(one.text) for one in patterns if one.name in named and one.is_guarded]
            following = self._following(guarded)
        return replace(report, patterns=found, following=following)

    def _pattern(self, record: RegisteredPattern, report: TraceReport) -> PatternInTrace:
        pattern = parse_pattern(record.text)
        if record.state != "active" or route_of(pattern, self._declaration):
            is_seeing = record.state == "active"
            state: TraceState = "other-key" if is_seeing else "suspended" if record.suspension else "paused"
            return PatternInTrace(name=record.name, version=record.version, state=state)
        first = self._seen.starts.get((record.name, record.version), 0)
        rules = self._constraint_set if record.is_guarded else self._ends
        found = self._run([pattern], self._seen.events, rules=rules, first=first)
        ended = found.ended[-1] if found.ended else None
        return PatternInTrace(
            name=record.name,
            version=record.version,
            state=_state(found, ended, report),
            matches=tuple(match.bindings for match in found.matches[-_SHOWN_MATCHES:]),
            matched=len(found.matches),
            partial_matches=found.stats.held,
            ended=ended,
        )

    def _with_broken(
        self, found: Sequence[PatternInTrace], records: Sequence[RegisteredPattern]
    ) -> tuple[PatternInTrace, ...]:
        """Patterns with how their last partial match ended, where they hold none; the events are matched one by one."""
        groups: dict[tuple[int, bool], list[Pattern]] = {}
        for one, record in zip(found, records, strict=True):
            pattern = parse_pattern(record.text)
            if one.state in ("waiting", "closed") or (one.state == "alive" and pattern.within_us is not None):
                first = self._seen.starts.get((one.name, one.version), 0)
                groups.setdefault((first, record.is_guarded), []).append(pattern)
        broken: dict[str, BrokenMatch] = {}
        for (first, is_guarded), patterns in groups.items():
            rules = self._constraint_set if is_guarded else self._ends
            options = replace(self._options, prune=None if is_guarded else Prune.OFF, first=first)
            broken |= broken_matches(patterns, self._seen.events, rules, options)
        return tuple(_ended_by(one, broken.get(one.name)) for one in found)

    def _following(self, patterns: Sequence[Pattern]) -> tuple[NextType, ...]:
        """What an event of each type that is known would mean: one copy of the transaction for each goes on with it."""
        declared = set(self._declaration.event_types)
        types = declared | set(self._constraint_set.types) | set(self._constraint_set.end_events)
        chosen = sorted(types)[: min(_MOST_TYPES, _MOST_COPIED // len(self._seen.events))]
        seen = self._seen.events
        if self._options.lateness_us is not None:
            seen = sorted(seen, key=lambda event: event.time_us)
        copies = [replace(event, key=str(number)) for event in seen for number in range(len(chosen))]
        last_us = seen[-1].time_us
        now_us = max(last_us, self._seen.newest_us or last_us)
        for number, event_type in enumerate(chosen):
            copies.append(Event(id=_NEXT, type=event_type, time_us=now_us, key=str(number), data={}))
        found = self._run(patterns, copies, options=replace(self._options, lateness_us=None))
        breaks = {one.deviation.key: one.reason.text for one in found.deviations}
        ends: dict[str, dict[str, str]] = {str(number): {} for number in range(len(chosen))}
        for pair in found.ended:
            if pair.ending.event_id == _NEXT:
                ends[pair.ending.key][pair.ending.pattern] = pair.reason
        return tuple(
            NextType(event_type=event_type, breaks=breaks.get(str(number)), ends=ends[str(number)])
            for number, event_type in enumerate(chosen)
        )

    def _run(
        self,
        patterns: Sequence[Pattern],
        events: Sequence[Event],
        *,
        rules: ConstraintSet | None = None,
        first: int = 0,
        options: MatchOptions | None = None,
    ) -> MatchReport:
        constraint_set = self._constraint_set if rules is None else rules
        prune = Prune.OFF if constraint_set is self._ends else None
        chosen = replace(options or self._options, prune=prune, first=first)
        return match_events(patterns, events, constraint_set, chosen)


def _ended_by(found: PatternInTrace, broken: BrokenMatch | None) -> PatternInTrace:
    """A pattern with how its last partial match ended; one that WITHIN has ended may still be in memory."""
    if broken is None:
        return found
    state: TraceState = "waiting" if found.state == "alive" else found.state
    return replace(found, state=state, partial_matches=0, broken=broken)


def _state(found: MatchReport, ended: EndedPair | None, report: TraceReport) -> TraceState:
    if found.stats.held and report.is_open:
        return "alive"
    if ended is not None:
        return "ended"
    return "waiting" if report.is_open else "closed"
