"""One transaction as recorded in the log: its events, the progress of each pattern, and possible next events.

The pipeline's state is in its workers, but can be derived from the log. So the events of one key are read from the log
and matched again in this process, with the stream's patterns and constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from constraints import ConstraintSet
from nfa import lookups_in, parse_pattern
from service.errors import TraceTooLong, UnknownTrace
from service.observing.measured_lateness import as_in_force
from service.registering.tables import tables_for
from service.runs import RunPlan
from service.runs.stream_report import StreamReport
from service.runs.stream_run import StreamRun, stream_plan
from service.runtime import Stores
from service.settings import Limits
from service.stores import RegisteredPattern
from service.trials.broken import MOST_EVENTS, broken_matches
from service.trials.trace_log import SeenKey, TraceLog
from shards import RoutedPattern, route_of, routed
from streams import Event, EventBatch, StreamDeclaration, format_time

_SHOWN_EVENTS = 200
_SHOWN_MATCHES = 20
_SHOWN_KEYS = 20
_MOST_EVENTS = 5_000
_MOST_TYPES = 50
_MOST_COPIED = 50_000
_NEXT = "\x00next"  # not the id of any event
_DEVIATION_MEMBERS = ("event", "event_type", "time", "constraints", "reason")
_ENDING_MEMBERS = ("row", "event", "event_type", "time", "form", "reason")


Document: TypeAlias = dict[str, Any]
"""A JSON object of ``GET /v1/traces/{stream}/{key}``. The API's schema describes its members."""


@dataclass(frozen=True, slots=True)
class TracedPattern:
    """A registered pattern in stored form, and in parsed form with its key."""

    record: RegisteredPattern
    routed: RoutedPattern

    @property
    def version(self) -> tuple[str, int]:
        return self.record.name, self.record.version


class Traces:
    """Shows single transactions, by reading and matching their events again."""

    def __init__(self, stores: Stores, limits: Limits) -> None:
        self._stores = stores
        self._log = TraceLog(stores, limits)

    def look(self, stream: str, key: str, by: str = "", *, is_replayed: bool = True) -> Document:
        """Show the last transaction of a correlation key, or of a value of the further key ``by``.

        Unless ``is_replayed``, the events are not matched again, and the lists of patterns and next events are empty.

        Raises ``UnknownStream``, ``UnknownTrace`` if the log contains no event of the key, and ``TraceTooLong`` if the
        transaction has too many events. Raises ``DeclarationError`` if the stream has no such further key.
        """
        declaration = as_in_force(self._stores, self._stores.registry.stream(stream))
        if by:
            declaration.attribute_of(by)
        patterns = [pattern for pattern in self._stores.registry.patterns(stream) if pattern.is_running]
        if by:
            patterns = [pattern for pattern in patterns if route_of(parse_pattern(pattern.text), declaration) == by]
        trace = self._log.read(declaration, key, by, patterns)
        if not trace.events:
            raise UnknownTrace(_unknown(stream, key, by, has_patterns=bool(patterns)), key=key)
        if is_replayed and len(trace.events) > _MOST_EVENTS:
            raise TraceTooLong(
                f"the transaction {key!r} has {len(trace.events)} events in the log, and at most {_MOST_EVENTS} are "
                "replayed; ?replay=false answers with its newest events, and GET /v1/alerts?key= lists its alerts",
                limit=_MOST_EVENTS,
            )
        version, constraint_set = (None, None) if by else self._log.constraints(declaration, trace)
        if is_replayed:
            members = _Replay(self._stores, declaration, trace, constraint_set, by).members(patterns)
        else:
            members = {"is_open": not trace.is_over, "patterns": [], "deviation": None, "following": []}
        return {
            "stream": stream,
            "key": key,
            "route": by or None,
            "positions": trace.positions,
            "is_complete": trace.is_complete,
            "constraints_version": version,
            "total_events": len(trace.events),
            "earlier_events": trace.earlier,
            "newest_events": [
                {"id": event.id, "type": event.type, "time": format_time(event.time_us), "data": event.data}
                for event in trace.events[-_SHOWN_EVENTS:]
            ],
            **members,
        }


def _unknown(stream: str, key: str, by: str, *, has_patterns: bool) -> str:
    if not by:
        return f"the log has no event of the transaction {key!r} of {stream!r}"
    hint = "" if has_patterns else f"; events are kept by {by} only while a pattern is matched by it, and none is"
    return f"the log has no event of {stream!r} whose {by} is {key!r}{hint}"


class _Replay:
    def __init__(
        self,
        stores: Stores,
        declaration: StreamDeclaration,
        trace: SeenKey,
        constraint_set: ConstraintSet | None,
        route: str,
    ) -> None:
        self._stores = stores
        ends = tuple(sorted(trace.ends)) if trace.is_over else declaration.end_events
        self._declaration = replace(declaration, end_events=ends)
        self._trace = trace
        self._route = route
        self._constraint_set = constraint_set

    def members(self, records: Sequence[RegisteredPattern]) -> Document:
        patterns = [TracedPattern(record, routed(parse_pattern(record.text), self._declaration)) for record in records]
        is_open, deviation = not self._trace.is_over, None
        if not self._route:
            report = self._run([])
            deviation = next(iter(report.bodies("deviations")), None)
            has_waiting = report.stats.events < len(self._trace.events)  # the newest events are in the reorder buffer
            is_open = is_open and (has_waiting or bool(report.stats.open_traces))
        documents = [self._pattern(pattern, is_open=is_open) for pattern in patterns]
        documents = self._with_broken(documents, patterns, is_open=is_open)
        following, more_types = list[Document](), 0
        if is_open and deviation is None and not self._route:
            running = {document["name"] for document in documents if document["state"] in ("alive", "waiting")}
            guarded = [pattern for pattern in patterns if pattern.record.name in running and pattern.record.is_guarded]
            following, more_types = self._following(guarded)
        summary = deviation and {name: deviation[name] for name in _DEVIATION_MEMBERS}
        follow = {"following": following, "more_types": more_types}
        return {"is_open": is_open, "patterns": documents, "deviation": summary, **follow}

    def _pattern(self, pattern: TracedPattern, *, is_open: bool) -> Document:
        record, route = pattern.record, pattern.routed.route
        nothing = {
            "matched": 0,
            "matches": [],
            "partial_matches": 0,
            "ending": None,
            "broken": None,
            "is_broken_examined": True,
        }
        document = {"name": record.name, "version": record.version, "route": route or None, **nothing}
        if record.state != "active":
            return {**document, "state": "suspended" if record.suspension else "paused"}
        if route != self._route:
            keys = self._keys(route)
            listed = {"route_keys": keys[:_SHOWN_KEYS], "more_route_keys": len(keys[_SHOWN_KEYS:])}
            return {**document, "state": "other_key", **listed}
        place = self._trace.first(pattern.version, is_open=is_open)
        if place == len(self._trace.events) and not is_open:
            return {**document, "state": "registered_later"}
        report = self._run([pattern], first=self._first(pattern, is_open=is_open), shown_from=place)
        ending = next(reversed(report.bodies("endings")), None)
        return {
            **document,
            "state": _state(report, ending, is_open=is_open),
            "matched": len(report.matches),
            "matches": [match["bindings"] for match in report.matches[-_SHOWN_MATCHES:]],
            "partial_matches": report.stats.held,
            "ending": ending and {name: ending[name] for name in _ENDING_MEMBERS if name in ending},
        }

    def _first(self, pattern: TracedPattern, *, is_open: bool) -> int:
        """Return the index of the first event that a pattern sees: 0 if it continues the version before."""
        has_begun = pattern.version not in self._trace.migrated
        return self._trace.first(pattern.version, is_open=is_open) if has_begun else 0

    def _keys(self, route: str) -> list[str]:
        keyed = EventBatch.from_events(self._trace.events).keyed_by(self._declaration.attribute_of(route))
        return list(dict.fromkeys(event.key for event in keyed.to_events()))

    def _with_broken(
        self, documents: Sequence[Document], patterns: Sequence[TracedPattern], *, is_open: bool
    ) -> list[Document]:
        """Add to each pattern's document how its last partial match ended, if it ended without a match.

        Patterns that see too many events are marked as not examined.
        """
        groups: dict[int, list[TracedPattern]] = {}
        for document, pattern in zip(documents, patterns, strict=True):
            is_timed = document["state"] == "alive" and pattern.routed.pattern.has_window
            if document["state"] in ("waiting", "closed") or is_timed:
                groups.setdefault(self._first(pattern, is_open=is_open), []).append(pattern)
        broken: dict[str, Document] = {}
        unexamined: set[str] = set()
        for first, group in groups.items():
            if len(self._trace.events) - first > MOST_EVENTS:
                unexamined.update(pattern.record.name for pattern in group)
                continue
            plan = self._plan(group)
            broken |= broken_matches(plan, self._trace.events, first=first, now_us=self._trace.newest_us)
        return [
            {**_ended_by(entry, broken.get(entry["name"])), "is_broken_examined": entry["name"] not in unexamined}
            for entry in documents
        ]

    def _following(self, patterns: Sequence[TracedPattern]) -> tuple[list[Document], int]:
        """Return the effect that a next event would have on the transaction, for each of at most 50 known types.

        The second result is the number of types that were not tried.
        """
        types = {*self._declaration.event_types, *self._declaration.end_events}
        if self._constraint_set is not None:
            types |= self._constraint_set.types | self._constraint_set.end_events
        tried_types = sorted(types)[: min(_MOST_TYPES, _MOST_COPIED // len(self._trace.events))]
        events = self._trace.events
        if self._declaration.lateness is not None:
            events = sorted(events, key=lambda event: event.time_us)
        copies = [replace(event, key=str(number)) for event in events for number in range(len(tried_types))]
        last_us = events[-1].time_us
        now_us = max(last_us, self._trace.newest_us or last_us)
        for number, event_type in enumerate(tried_types):
            copies.append(Event(id=_NEXT, type=event_type, time_us=now_us, key=str(number), data={}))
        run = StreamRun(self._plan(patterns, replace(self._declaration, lateness=None, late="dead_letter")))
        run.feed(EventBatch.from_events(copies))
        report = run.report(is_open=True)
        breaks = {body["key"]: body["reason"] for body in report.bodies("deviations")}
        ends: dict[str, dict[str, str]] = {str(number): {} for number in range(len(tried_types))}
        for body in report.bodies("endings"):
            if body["event"] == _NEXT:
                ends[body["key"]][body["pattern"]] = body["reason"]
        return [
            {"event_type": name, "is_possible": key not in breaks, "breaks": breaks.get(key), "ends": ends[key]}
            for key, name in zip(ends, tried_types, strict=True)
        ], len(types) - len(tried_types)

    def _plan(self, patterns: Sequence[TracedPattern], declaration: StreamDeclaration | None = None) -> RunPlan:
        pairs = [(pattern.routed, pattern.record.is_guarded) for pattern in patterns]
        lookups = {lookup for pattern in patterns for lookup in lookups_in(pattern.routed.pattern)}
        tables = tables_for(self._stores, lookups)
        return stream_plan(declaration or self._declaration, self._constraint_set, pairs, tables=tables)

    def _run(self, patterns: Sequence[TracedPattern], first: int = 0, shown_from: int = 0) -> StreamReport:
        """Match the events again. The patterns see only the events from index ``first`` on.

        The report contains only matches that are found at events from index ``shown_from`` on.
        """
        names, events = [pattern.record.name for pattern in patterns], EventBatch.from_events(self._trace.events)
        run = StreamRun(self._plan(patterns), follows_all=True, later=names)
        run.feed(events.slice(0, first), route=self._route)
        for name in names:
            run.start(name)
        if first < shown_from:
            run.feed(events.slice(first, shown_from - first), route=self._route)
            run.matched()
        run.feed(events.slice(max(first, shown_from)), route=self._route)
        if self._trace.newest_us is not None:
            run.pass_time(self._trace.newest_us)
        return run.report(is_open=True)


def _ended_by(document: Document, broken: Document | None) -> Document:
    """Add to a pattern's document how its last partial match ended. Then the state ``alive`` becomes ``waiting``."""
    if broken is None:
        return document
    state = "waiting" if document["state"] == "alive" else document["state"]
    return {**document, "state": state, "partial_matches": 0, "broken": broken}


def _state(report: StreamReport, ending: Document | None, *, is_open: bool) -> str:
    if report.stats.held and is_open:
        return "alive"
    if ending is not None and "row" not in ending:  # otherwise partial matches for other rows may still begin
        return "ended"
    return "waiting" if is_open else "closed"
