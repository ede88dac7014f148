"""One transaction as the log has it: what was seen, what the patterns make of it, what is still possible.

The pipeline's own state is in its workers, but the log is what that state is a function of. So the events of one key
are read from the log and matched again, in this process, with the patterns and constraints of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from constraints import ConstraintSet
from nfa import parse_pattern
from service.errors import TraceTooLong, UnknownTrace
from service.observing.measured_lateness import as_in_force
from service.registering.routing import RoutedPattern, route_of, routed
from service.runs import RunPlan
from service.runs.stream_report import StreamReport
from service.runs.stream_run import StreamRun, stream_plan
from service.runtime import Stores
from service.settings import Limits
from service.stores import RegisteredPattern
from service.trials.broken import BrokenMatch, broken_matches
from service.trials.trace_log import SeenKey, TraceLog
from streams import Event, EventBatch, StreamDeclaration

TraceState: TypeAlias = Literal["alive", "waiting", "ended", "closed", "paused", "suspended", "other-key"]

_SHOWN_EVENTS = 200
_SHOWN_MATCHES = 20
_SHOWN_KEYS = 20
_MOST_EVENTS = 5_000
_MOST_TYPES = 50
_MOST_COPIED = 50_000
_NEXT = "\x00next"  # no event has such an id


@dataclass(frozen=True, slots=True)
class OnStream:
    """A registered pattern, and the key by which it is matched."""

    record: RegisteredPattern
    routed: RoutedPattern

    @property
    def is_guarded(self) -> bool:
        """Whether the constraints terminate its partial matches early."""
        return self.record.is_guarded


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternInTrace:
    """The state of a pattern in a transaction.

    Attributes:
        name: Of the pattern.
        version: Of the pattern.
        state: ``alive``: it holds partial matches; ``waiting``: it has bound nothing and may still match; ``ended``: it
            can no longer match; ``closed``: the transaction is over; ``paused``, ``suspended``: it sees nothing;
            ``other-key``: it is matched by a further key, on the transactions of its values.
        matches: Event ids by alias, of the newest matches.
        matched: How many matches there are.
        partial_matches: How many (pattern, instance) pairs are bound in partial matches.
        ended: The row of its early termination.
        broken: How its last partial match ended without a match, where it holds none.
        by: The further key that it is matched by; empty: the correlation key.
        keys: With ``other-key``: the values of that key in the events of this transaction, at most 20.
    """

    name: str
    version: int
    state: TraceState
    by: str = ""
    keys: tuple[str, ...] = ()
    matches: tuple[Mapping[str, Sequence[str]], ...] = ()
    matched: int = 0
    partial_matches: int = 0
    ended: Mapping[str, Any] | None = None
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
        key: Its correlation key, or its value of the further key.
        by: Name of the further key; empty: it is a transaction of the correlation key.
        positions: By shard, up to which entry of the log this holds; none of a derived stream.
        is_complete: Whether all of the log is there to say so; else its beginning may be missing.
        is_open: Whether the transaction is still open, according to the log.
        earlier_events: Events of transactions of that key that were over before it.
        total: How many events it has.
        events: The newest of them, oldest first.
        patterns: By name; of a further key those that are matched by it.
        deviation: The row of its deviation.
        following: What may come, by type; empty where it is over or has broken the constraints, and of a further key.
        constraints_version: Of the set that it follows; None where there is none.
    """

    stream: str
    key: str
    by: str
    positions: Mapping[int, str]
    is_complete: bool
    is_open: bool
    earlier_events: int
    total: int
    events: tuple[Event, ...]
    patterns: tuple[PatternInTrace, ...]
    deviation: Mapping[str, Any] | None
    following: tuple[NextType, ...]
    constraints_version: int | None


class Traces:
    """Looks at transactions.

    Args:
        stores: Where the log and the registry are.
        limits: How much of the log is read.
    """

    def __init__(self, stores: Stores, limits: Limits) -> None:
        self._stores = stores
        self._log = TraceLog(stores, limits)

    def look(self, stream: str, key: str, by: str = "") -> TraceReport:
        """What is known of the last transaction of a key.

        Args:
            stream: Its name.
            key: Correlation key, or value of the further key.
            by: Name of the further key; empty for the correlation key.

        Raises:
            UnknownStream: The stream is not declared.
            DeclarationError: It has no such further key.
            UnknownTrace: The log holds no event of that key.
            TraceTooLong: The transaction has more events than are matched again.
        """
        declaration = as_in_force(self._stores, self._stores.registry.stream(stream))
        if by:
            declaration.attribute_of(by)
        patterns = [one for one in self._stores.registry.patterns(stream) if one.is_running]
        if by:
            patterns = [one for one in patterns if route_of(parse_pattern(one.text), declaration) == by]
        seen = self._log.read(declaration, key, by)
        if not seen.events:
            raise UnknownTrace(_unknown(stream, key, by, has_patterns=bool(patterns)), key=key)
        if len(seen.events) > _MOST_EVENTS:
            raise TraceTooLong(
                f"the transaction {key!r} has {len(seen.events)} events in the log, and at most {_MOST_EVENTS} are "
                "replayed; GET /v1/alerts?key= lists its alerts",
                limit=_MOST_EVENTS,
            )
        version, constraint_set = (None, None) if by else self._log.constraints(declaration, seen)
        return _Look(declaration, seen, constraint_set, by).report(
            patterns,
            TraceReport(
                stream=stream,
                key=key,
                by=by,
                positions=seen.positions,
                is_complete=seen.is_complete,
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


def _unknown(stream: str, key: str, by: str, *, has_patterns: bool) -> str:
    if not by:
        return f"the log has no event of the transaction {key!r} of {stream!r}"
    why = "" if has_patterns else f"; events are kept by {by} only while a pattern is matched by it, and none is"
    return f"the log has no event of {stream!r} whose {by} is {key!r}{why}"


class _Look:
    """Matches the events of a transaction again."""

    def __init__(
        self, declaration: StreamDeclaration, seen: SeenKey, constraint_set: ConstraintSet | None, route: str
    ) -> None:
        ends = tuple(sorted(seen.ends)) if seen.is_over else declaration.end_events
        self._declaration = replace(declaration, end_events=ends)
        self._seen = seen
        self._route = route
        self._constraint_set = constraint_set

    def report(self, records: Sequence[RegisteredPattern], report: TraceReport) -> TraceReport:
        """The report with what the patterns and the constraints make of the events."""
        patterns = [OnStream(one, routed(parse_pattern(one.text), self._declaration)) for one in records]
        is_open, deviation = report.is_open, None
        if not self._route:
            plain = self._run([])
            deviation = next(iter(plain.bodies("deviations")), None)
            has_waiting = plain.stats.events < len(self._seen.events)  # for older ones, by the lateness of the stream
            is_open = is_open and (has_waiting or bool(plain.stats.open_traces))
        report = replace(report, is_open=is_open, deviation=deviation)
        found = self._with_broken([self._pattern(one, report) for one in patterns], patterns)
        following: tuple[NextType, ...] = ()
        if is_open and deviation is None and not self._route:
            running = {one.name for one in found if one.state in ("alive", "waiting")}
            following = self._following([one for one in patterns if one.record.name in running and one.is_guarded])
        return replace(report, patterns=found, following=following)

    def _pattern(self, one: OnStream, report: TraceReport) -> PatternInTrace:
        record, route = one.record, one.routed.route
        if record.state != "active":
            state: TraceState = "suspended" if record.suspension else "paused"
            return PatternInTrace(name=record.name, version=record.version, state=state, by=route)
        if route != self._route:
            keys = self._keys(route)
            return PatternInTrace(name=record.name, version=record.version, state="other-key", by=route, keys=keys)
        found = self._run([one], first=self._first(one))
        ended = next(reversed(found.bodies("endings")), None)
        return PatternInTrace(
            name=record.name,
            version=record.version,
            by=route,
            state=_state(found, ended, report),
            matches=tuple(match["bindings"] for match in found.matches[-_SHOWN_MATCHES:]),
            matched=len(found.matches),
            partial_matches=found.stats.held,
            ended=ended,
        )

    def _first(self, one: OnStream) -> int:
        return self._seen.starts.get((one.record.name, one.record.version), 0)

    def _keys(self, route: str) -> tuple[str, ...]:
        """The values of a further key in the events, in their order."""
        keyed = EventBatch.from_events(self._seen.events).keyed_by(self._declaration.attribute_of(route))
        return tuple(dict.fromkeys(event.key for event in keyed.to_events()))[:_SHOWN_KEYS]

    def _with_broken(self, found: Sequence[PatternInTrace], patterns: Sequence[OnStream]) -> tuple[PatternInTrace, ...]:
        """Patterns with how their last partial match ended, where they hold none; the events are matched one by one."""
        groups: dict[int, list[OnStream]] = {}
        for state, one in zip(found, patterns, strict=True):
            is_timed = state.state == "alive" and one.routed.pattern.within_us is not None
            if state.state in ("waiting", "closed") or is_timed:
                groups.setdefault(self._first(one), []).append(one)
        broken: dict[str, BrokenMatch] = {}
        for first, some in groups.items():
            plan = self._plan(some)
            broken |= broken_matches(plan, self._seen.events, first=first, now_us=self._seen.newest_us)
        return tuple(_ended_by(one, broken.get(one.name)) for one in found)

    def _following(self, patterns: Sequence[OnStream]) -> tuple[NextType, ...]:
        """The effect of a next event of each known type, each on a copy of the transaction."""
        types = {*self._declaration.event_types, *self._declaration.end_events}
        if self._constraint_set is not None:
            types |= self._constraint_set.types | self._constraint_set.end_events
        chosen = sorted(types)[: min(_MOST_TYPES, _MOST_COPIED // len(self._seen.events))]
        seen = self._seen.events
        if self._declaration.lateness is not None:
            seen = sorted(seen, key=lambda event: event.time_us)
        copies = [replace(event, key=str(number)) for event in seen for number in range(len(chosen))]
        last_us = seen[-1].time_us
        now_us = max(last_us, self._seen.newest_us or last_us)
        for number, event_type in enumerate(chosen):
            copies.append(Event(id=_NEXT, type=event_type, time_us=now_us, key=str(number), data={}))
        run = StreamRun(self._plan(patterns, replace(self._declaration, lateness=None, late="dead_letter")))
        run.feed(EventBatch.from_events(copies))
        found = run.report(is_open=True)
        breaks = {body["key"]: body["reason"] for body in found.bodies("deviations")}
        ends: dict[str, dict[str, str]] = {str(number): {} for number in range(len(chosen))}
        for body in found.bodies("endings"):
            if body["event"] == _NEXT:
                ends[body["key"]][body["pattern"]] = body["reason"]
        return tuple(
            NextType(event_type=event_type, breaks=breaks.get(str(number)), ends=ends[str(number)])
            for number, event_type in enumerate(chosen)
        )

    def _plan(self, patterns: Sequence[OnStream], declaration: StreamDeclaration | None = None) -> RunPlan:
        pairs = [(one.routed, one.record.is_guarded) for one in patterns]
        return stream_plan(declaration or self._declaration, self._constraint_set, pairs)

    def _run(self, patterns: Sequence[OnStream], first: int = 0) -> StreamReport:
        """Match the events again; patterns see those from the first on."""
        names, events = [one.record.name for one in patterns], EventBatch.from_events(self._seen.events)
        run = StreamRun(self._plan(patterns), follows_all=True, later=names)
        run.feed(events.slice(0, first), route=self._route)
        for name in names:
            run.start(name)
        run.feed(events.slice(first), route=self._route)
        if self._seen.newest_us is not None:
            run.pass_time(self._seen.newest_us)
        return run.report(is_open=True)


def _ended_by(found: PatternInTrace, broken: BrokenMatch | None) -> PatternInTrace:
    """A pattern with how its last partial match ended; one that WITHIN has ended may still be in memory."""
    if broken is None:
        return found
    state: TraceState = "waiting" if found.state == "alive" else found.state
    return replace(found, state=state, partial_matches=0, broken=broken)


def _state(found: StreamReport, ended: object, report: TraceReport) -> TraceState:
    if found.stats.held and report.is_open:
        return "alive"
    if ended is not None:
        return "ended"
    return "waiting" if report.is_open else "closed"
