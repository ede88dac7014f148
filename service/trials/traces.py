"""One transaction as recorded in the log: its events, the progress of each pattern, and possible next events.

The pipeline keeps its state in workers, but the state follows from the log. So the events of one key are read from the
log and matched again in this process, with the stream's patterns and constraints.
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
from service.trials.broken import broken_matches
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
_OF_DEVIATION = ("event", "event_type", "time", "constraints", "reason")
_OF_ENDING = ("row", "event", "event_type", "time", "form", "reason")


Document: TypeAlias = dict[str, Any]
"""A JSON object of ``GET /v1/traces/{stream}/{key}``; the API's schema describes the members."""


@dataclass(frozen=True, slots=True)
class TracedPattern:
    """A registered pattern, and the key by which it is matched."""

    record: RegisteredPattern
    routed: RoutedPattern


class Traces:
    """Shows transactions, by reading and matching their events again."""

    def __init__(self, stores: Stores, limits: Limits) -> None:
        self._stores = stores
        self._log = TraceLog(stores, limits)

    def look(self, stream: str, key: str, by: str = "") -> Document:
        """Show the last transaction of a correlation key, or of a value of the further key ``by``.

        Raises ``UnknownTrace`` if the log holds no event of the key, ``TraceTooLong``, ``UnknownStream``, or
        ``DeclarationError`` if the stream has no such further key.
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
        return {
            "stream": stream,
            "key": key,
            "route": by or None,
            "positions": seen.positions,
            "is_complete": seen.is_complete,
            "constraints_version": version,
            "total_events": len(seen.events),
            "earlier_events": seen.earlier,
            "newest_events": [
                {"id": one.id, "type": one.type, "time": format_time(one.time_us), "data": one.data}
                for one in seen.events[-_SHOWN_EVENTS:]
            ],
            **_Look(self._stores, declaration, seen, constraint_set, by).members(patterns),
        }


def _unknown(stream: str, key: str, by: str, *, has_patterns: bool) -> str:
    if not by:
        return f"the log has no event of the transaction {key!r} of {stream!r}"
    why = "" if has_patterns else f"; events are kept by {by} only while a pattern is matched by it, and none is"
    return f"the log has no event of {stream!r} whose {by} is {key!r}{why}"


class _Look:
    """Matches a transaction's events again."""

    def __init__(
        self,
        stores: Stores,
        declaration: StreamDeclaration,
        seen: SeenKey,
        constraint_set: ConstraintSet | None,
        route: str,
    ) -> None:
        self._stores = stores
        ends = tuple(sorted(seen.ends)) if seen.is_over else declaration.end_events
        self._declaration = replace(declaration, end_events=ends)
        self._seen = seen
        self._route = route
        self._constraint_set = constraint_set

    def members(self, records: Sequence[RegisteredPattern]) -> Document:
        """Members about the progress of patterns and about constraints."""
        patterns = [TracedPattern(one, routed(parse_pattern(one.text), self._declaration)) for one in records]
        is_open, deviation = not self._seen.is_over, None
        if not self._route:
            plain = self._run([])
            deviation = next(iter(plain.bodies("deviations")), None)
            has_waiting = plain.stats.events < len(self._seen.events)  # the newest events wait in the reorder buffer
            is_open = is_open and (has_waiting or bool(plain.stats.open_traces))
        found = self._with_broken([self._pattern(one, is_open=is_open) for one in patterns], patterns)
        following: list[Document] = []
        if is_open and deviation is None and not self._route:
            running = {one["name"] for one in found if one["state"] in ("alive", "waiting")}
            guarded = [one for one in patterns if one.record.name in running and one.record.is_guarded]
            following = self._following(guarded)
        shown = deviation and {name: deviation[name] for name in _OF_DEVIATION}
        return {"is_open": is_open, "patterns": found, "deviation": shown, "following": following}

    def _pattern(self, one: TracedPattern, *, is_open: bool) -> Document:
        record, route = one.record, one.routed.route
        nothing = {"matched": 0, "matches": [], "partial_matches": 0, "ending": None, "broken": None}
        document = {"name": record.name, "version": record.version, "route": route or None, **nothing}
        if record.state != "active":
            return {**document, "state": "suspended" if record.suspension else "paused"}
        if route != self._route:
            return {**document, "state": "other_key", "route_keys": self._keys(route)}
        found = self._run([one], first=self._first(one))
        ended = next(reversed(found.bodies("endings")), None)
        return {
            **document,
            "state": _state(found, ended, is_open=is_open),
            "matched": len(found.matches),
            "matches": [match["bindings"] for match in found.matches[-_SHOWN_MATCHES:]],
            "partial_matches": found.stats.held,
            "ending": ended and {name: ended[name] for name in _OF_ENDING if name in ended},
        }

    def _first(self, one: TracedPattern) -> int:
        return self._seen.starts.get((one.record.name, one.record.version), 0)

    def _keys(self, route: str) -> list[str]:
        """Values of a further key in the events, in order of first occurrence."""
        keyed = EventBatch.from_events(self._seen.events).keyed_by(self._declaration.attribute_of(route))
        return list(dict.fromkeys(event.key for event in keyed.to_events()))[:_SHOWN_KEYS]

    def _with_broken(self, found: Sequence[Document], patterns: Sequence[TracedPattern]) -> list[Document]:
        """Add, to patterns without partial matches, how the last one ended; this matches the events one by one."""
        groups: dict[int, list[TracedPattern]] = {}
        for document, one in zip(found, patterns, strict=True):
            is_timed = document["state"] == "alive" and one.routed.pattern.has_window
            if document["state"] in ("waiting", "closed") or is_timed:
                groups.setdefault(self._first(one), []).append(one)
        broken: dict[str, Document] = {}
        for first, some in groups.items():
            plan = self._plan(some)
            broken |= broken_matches(plan, self._seen.events, first=first, now_us=self._seen.newest_us)
        return [_ended_by(one, broken.get(one["name"])) for one in found]

    def _following(self, patterns: Sequence[TracedPattern]) -> list[Document]:
        """The effect of a next event of each known type; each type is tried on its own copy of the transaction."""
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
        return [
            {"event_type": name, "is_possible": key not in breaks, "breaks": breaks.get(key), "ends": ends[key]}
            for key, name in zip(ends, chosen, strict=True)
        ]

    def _plan(self, patterns: Sequence[TracedPattern], declaration: StreamDeclaration | None = None) -> RunPlan:
        pairs = [(one.routed, one.record.is_guarded) for one in patterns]
        lookups = {lookup for one in patterns for lookup in lookups_in(one.routed.pattern)}
        tables = tables_for(self._stores, lookups)
        return stream_plan(declaration or self._declaration, self._constraint_set, pairs, tables=tables)

    def _run(self, patterns: Sequence[TracedPattern], first: int = 0) -> StreamReport:
        """Match the events again; patterns see events from the index ``first`` on."""
        names, events = [one.record.name for one in patterns], EventBatch.from_events(self._seen.events)
        run = StreamRun(self._plan(patterns), follows_all=True, later=names)
        run.feed(events.slice(0, first), route=self._route)
        for name in names:
            run.start(name)
        run.feed(events.slice(first), route=self._route)
        if self._seen.newest_us is not None:
            run.pass_time(self._seen.newest_us)
        return run.report(is_open=True)


def _ended_by(found: Document, broken: Document | None) -> Document:
    """Add how a pattern's last partial match ended; a partial match that WITHIN ended may still be in memory."""
    if broken is None:
        return found
    state = "waiting" if found["state"] == "alive" else found["state"]
    return {**found, "state": state, "partial_matches": 0, "broken": broken}


def _state(found: StreamReport, ended: Document | None, *, is_open: bool) -> str:
    if found.stats.held and is_open:
        return "alive"
    if ended is not None and "row" not in ended:  # otherwise other rows may still begin
        return "ended"
    return "waiting" if is_open else "closed"
