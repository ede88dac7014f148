"""Runs patterns over the newest events of the log before the patterns are registered. Stores nothing."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nfa import Pattern, lookups_in
from service.observing.measured_lateness import as_in_force
from service.registering.registration import Registration
from service.registering.strangers import strangers
from service.registering.tables import tables_for
from service.runs.stream_report import StreamReport
from service.runs.stream_run import StreamRun, stream_plan
from service.runtime import Stores
from shards import read_suppression, routed
from streams import EventBatch, LogEntry, RecordKind, StreamDeclaration, format_time, position_order

_SHOWN_MATCHES = 100
_SHOWN_LOSSES = 10
_LISTS = ("matches", "timeouts", "endings")  # transactions that began earlier would seem to deviate


class DryRuns:
    """Runs patterns over the newest events of a stream."""

    def __init__(self, stores: Stores, registration: Registration) -> None:
        self._stores = stores
        self._registration = registration

    def run(
        self,
        stream: str,
        pattern: Pattern,
        *,
        is_guarded: bool,
        most_events: int,
        suppress: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run a pattern, and return the answer of ``POST /v1/patterns/dry-run``, whose schema describes the members.

        Open transactions of the stream remain open. ``suppress`` is written as in a pattern's document.
        """
        warnings = self._registration.check_pattern(stream, pattern, is_guarded=is_guarded)
        declaration = as_in_force(self._stores, self._stores.registry.stream(stream))
        on_stream = routed(pattern, declaration)
        on_stream = replace(on_stream, suppression=read_suppression(suppress, on_stream))
        events = self._events(declaration, on_stream.route, most_events)
        rules = self._registration.constraint_set(declaration, route=on_stream.route, is_guarded=True)
        tables = tables_for(self._stores, lookups_in(pattern))
        warnings += tuple(
            f"line {notice.position.line}, column {notice.position.column}: {notice.message}"
            for _, notice in strangers([pattern], events, forms=tables.forms)
        )
        begin_s = time.perf_counter()
        plan = stream_plan(declaration, rules, [(on_stream, is_guarded)], self._registration.budget, tables)
        run = StreamRun(plan, lists=_LISTS)
        run.feed(events, route=on_stream.route)
        report = run.report(is_open=True)
        given_up = [loss for loss in report.overflow if loss.work]
        warnings += tuple(
            f"it was given up in the transaction {loss.key!r} at the event {loss.event_id!r}, as its events met more "
            "partial matches than the budget allows" + (", and suspended" if loss.suspends else "")
            for loss in given_up[:_SHOWN_LOSSES]
        )
        if unlisted := len(given_up[_SHOWN_LOSSES:]):
            warnings += (f"further transactions in which it was given up for the same reason: {unlisted}",)
        return {
            "pattern": pattern.name,
            "stream": stream,
            "route": on_stream.route or None,
            **_counted(events, report),
            "failing_conditions": self._registration.inspect(stream, pattern, is_guarded=is_guarded).to_document()[
                "failing_conditions"
            ],
            "warnings": warnings,
            "duration_s": round(time.perf_counter() - begin_s, 4),
        }

    def _events(self, declaration: StreamDeclaration, route: str, most: int) -> EventBatch:
        """Return the newest ``most`` events of a stream over all shards, in the order of arrival."""
        shards = range(self._stores.log.layout.read().shards)
        since_ms = self._stores.registry.since_ms(declaration.name)
        newest_first = heapq.merge(*(self._stores.log.newest_first(shard, since_ms) for shard in shards), key=_age)
        batches: list[EventBatch] = []
        count = 0
        for batch in _batches(newest_first, declaration, route):
            batches.append(batch)
            count += len(batch)
            if count >= most:
                break
        return EventBatch.joined(batches[::-1]).slice(max(count - most, 0)) if batches else EventBatch.from_events([])


def _counted(events: EventBatch, report: StreamReport) -> dict[str, Any]:
    times_us, reasons = events.time_us, Counter((body["form"], body["reason"]) for body in report.bodies("endings"))
    return {
        "events": len(events),
        "first_time": format_time(int(times_us.min())) if len(events) else None,
        "last_time": format_time(int(times_us.max())) if len(events) else None,
        "matched": len(report.matches),
        "suppressed": report.suppressed or 0,
        "matches": [_match_document(match) for match in report.matches[:_SHOWN_MATCHES]],
        "endings": reasons.total(),
        "ending_reasons": [
            {"form": form, "reason": reason, "count": count} for (form, reason), count in reasons.most_common()
        ],
        "timeouts": len(report.bodies("timeouts")),
        "dropped": sum(overflow.dropped for overflow in report.overflow),
        "partial_matches": report.stats.held,
    }


def _match_document(match: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: match[name] for name in ("key", "row", "start", "end", "bindings") if name in match}
    return {**members, "would_be_lost": "would_be_lost" in match}


def _age(entry: LogEntry) -> tuple[int, int]:
    milliseconds, sequence = position_order(entry.position)
    return -milliseconds, -sequence


def _batches(entries: Iterator[LogEntry], declaration: StreamDeclaration, route: str) -> Iterator[EventBatch]:
    for entry in entries:
        if entry.kind is RecordKind.EVENTS and entry.stream == declaration.name and not entry.route:
            batch = EventBatch.from_bytes(entry.body)
            yield batch.keyed_by(declaration.attribute_of(route)) if route else batch
