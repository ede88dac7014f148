"""One transaction as recorded in the log: its events, the progress of each pattern, and possible next events.

The pipeline's state is in its workers, but can be derived from the log. So the events of one key are read from the log
and matched again in this process, with the stream's patterns and constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from constraints import ConstraintSet
from nfa import lookups_in, parse_pattern
from service.errors import TraceTooLong, UnknownTrace
from service.observing.measured_lateness import as_in_force
from service.registering.tables import tables_for
from service.runs import RunPlan
from service.runs.stream_report import StreamReport
from service.runs.stream_run import Change, StreamRun, stream_plan
from service.runtime import Stores
from service.settings import Limits
from service.stores import RegisteredPattern
from service.trials.broken import MOST_EVENTS, MOST_PATTERNS, broken_matches
from service.trials.trace_log import PatternChange, SeenKey, TraceLog, versions_of
from shards import RoutedPattern, route_of, routed
from streams import Event, EventBatch, PatternOn, PatternPause, StreamDeclaration, StreamOn, format_time

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
        self._declaration = declaration
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
        nothing: Document = {
            "seen_events": None,
            "matched": 0,
            "matches": [],
            "earlier_matched": None,
            "partial_matches": 0,
            "ending": None,
            "broken": None,
            "is_broken_examined": True,
        }
        document = {"name": record.name, "version": record.version, "route": route or None, **nothing}
        if record.suspension:  # which is not in the log of each shard
            return {**document, "state": "suspended"}
        if route != self._route:
            keys = self._keys(route)
            listed = {"route_keys": keys[:_SHOWN_KEYS], "more_route_keys": len(keys[_SHOWN_KEYS:])}
            return {**document, "state": "paused" if record.is_paused else "other_key", **listed}
        report = self._run([pattern])
        has_earlier = bool(versions_of(self._records(pattern)) - {record.version})
        own = _of_version(report, record.version) if has_earlier else report
        endings = [ending for ending in own.bodies("endings") if ending["version"] == record.version]
        ending = endings[-1] if endings else None
        return {
            **document,
            "state": self._state(pattern, report, ending, is_open=is_open),
            "seen_events": self._trace.seen(*pattern.version),
            "matched": len(own.matches),
            "matches": [match["bindings"] for match in own.matches[-_SHOWN_MATCHES:]],
            "earlier_matched": len(report.matches) - len(own.matches) if has_earlier else None,
            "partial_matches": report.stats.held,
            "ending": ending and {name: ending[name] for name in _ENDING_MEMBERS if name in ending},
        }

    def _state(self, pattern: TracedPattern, report: StreamReport, ending: Document | None, *, is_open: bool) -> str:
        if pattern.record.is_paused:
            return "paused"
        if not is_open and not self._trace.seen(*pattern.version):
            records = self._trace.records(pattern.record.name)
            earlier = [(place, record) for place, record in records if place < len(self._trace.events)]
            return "was_paused" if pattern.record.version in versions_of(earlier) else "registered_later"
        if report.stats.held and is_open:
            return "alive"
        if ending is not None and "row" not in ending:  # otherwise partial matches for other rows may still begin
            return "ended"
        return "waiting" if is_open else "closed"

    def _records(self, pattern: TracedPattern) -> list[PatternChange]:
        """Return the starts and pauses of a pattern, without earlier versions that read other tables."""
        lookups = lookups_in(pattern.routed.pattern)
        return [
            (place, record)
            for place, record in self._trace.records(pattern.record.name)
            if isinstance(record, PatternPause)
            or record.version == pattern.record.version
            or lookups_in(parse_pattern(record.text)) <= lookups
        ]

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
                first = self._first(pattern)
                if first is not None:
                    groups.setdefault(first, []).append(pattern)
        broken: dict[str, Document] = {}
        unexamined: set[str] = set()
        for first, group in groups.items():
            if len(self._trace.events) - first > MOST_EVENTS:
                unexamined.update(pattern.record.name for pattern in group)
                continue
            for begin in range(0, len(group), MOST_PATTERNS):
                part = group[begin : begin + MOST_PATTERNS]
                changes = self._changes(part, first)
                now_us = self._trace.newest_us
                broken |= broken_matches(self._plan(part), self._trace.events, changes, first=first, now_us=now_us)
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
        plan = self._plan(patterns, replace(self._declaration, lateness=None, late="dead_letter"))
        changes = [(place * len(tried_types), record) for place, record in self._changes(patterns)]
        run = StreamRun(plan, changes=changes)
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

    def _first(self, pattern: TracedPattern) -> int | None:
        """Return the index of the first event that a pattern has seen since its last start.

        The result is None if it was paused since, or lets partial matches of an earlier version finish.
        """
        place, record = next(reversed(self._records(pattern)), (0, None))
        return place if isinstance(record, PatternOn) and record.start == "fresh" else None

    def _changes(self, patterns: Sequence[TracedPattern], first: int = 0) -> list[Change]:
        """Return the declarations of the stream, starts and pauses of patterns from index ``first`` on, and the end."""
        changes: list[Change] = [(place, StreamOn(declaration)) for place, declaration in self._trace.declarations]
        for pattern in patterns:
            changes += [(place, record) for place, record in self._records(pattern) if place >= first]
        if self._trace.end is not None:
            changes.append((len(self._trace.events), self._trace.end))
        return sorted(changes, key=lambda change: change[0])

    def _run(self, patterns: Sequence[TracedPattern]) -> StreamReport:
        """Match the events again."""
        run = StreamRun(self._plan(patterns), follows_all=True, changes=self._changes(patterns))
        run.feed(EventBatch.from_events(self._trace.events), route=self._route)
        if self._trace.newest_us is not None:
            run.pass_time(self._trace.newest_us)
        return run.report(is_open=True)


def _ended_by(document: Document, broken: Document | None) -> Document:
    """Add to a pattern's document how its last partial match ended. Then the state ``alive`` becomes ``waiting``."""
    if broken is None:
        return document
    state = "waiting" if document["state"] == "alive" else document["state"]
    return {**document, "state": state, "partial_matches": 0, "broken": broken}


def _of_version(report: StreamReport, version: int) -> StreamReport:
    """Return a report with the matches of one version only."""
    lanes = [
        lane.chosen(np.array([match.version == version for match in lane.values_of_matches()], np.bool_))
        for lane in report.lanes
    ]
    return replace(report, lanes=tuple(lanes))
