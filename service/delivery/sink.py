"""The sink of the pipeline, which stores its result rows, queues deliveries, and appends derived events to the log.

If the process dies while it writes a micro-batch, the whole micro-batch is written again. Therefore the order of
writing matters: derived events, the times of derived streams, results, decisions from the shards' observations, and
last the shards' reports, which mark the entries as matched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import structlog

from service.delivery.decisions import Decisions
from service.runtime import Stores
from service.stores import (
    DerivedEventStore,
    DerivedPart,
    RegisteredWebhook,
    RequestContext,
    RequestContextStore,
    Writing,
)
from shards import ALERT, ANSWER, DEAD_LETTER, INCIDENT_CHANGES, REKEYED, STATS, SUPPRESSED, OutputRow, ResultKind
from streams import Clock, EventBatch, parse_time

if TYPE_CHECKING:
    from service.observing.spans import OpenSpan, Spans

_MOST_LINKS = 32  # links of a span


class AlertSink:
    """Writes the rows of micro-batches. Writing the same rows again changes nothing.

    New deliveries are due immediately. If ``spans`` is given, an alert is traced if its last event was sent by a traced
    request.
    """

    def __init__(self, stores: Stores, clock: Clock, spans: Spans | None = None) -> None:
        self._stores = stores
        self._clock = clock
        self._spans = None if spans is None else AlertSpans(spans, stores.request_contexts)
        self._decisions = Decisions(stores.deciders, clock)

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        """Write all or some of the rows of a micro-batch.

        If Redis does not answer, the call can be repeated. While the log is being resharded, raise ``LogResharding``.
        """
        reports = [row for row in rows if row.kind == STATS.name]
        append_derived(self._stores.derived, [row for row in rows if row.kind == REKEYED.name], reports)
        self.index(rows, epoch_id)

    def index(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        """Write all rows except derived events. If a shard has several reports, store the last report."""
        reports = [row for row in rows if row.kind == STATS.name]
        self._store([row for row in rows if row.kind not in (STATS.name, REKEYED.name)], epoch_id)
        self._decisions(reports)
        newest = {row.shard: row for row in reports}
        # The reports are written last, so that the alerts of entries that count as matched are always stored.
        self._stores.pipeline_status.note(list(newest.values()))

    def _store(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        if not rows:
            return
        by_kind: defaultdict[str, list[OutputRow]] = defaultdict(list)
        for row in rows:
            by_kind[row.kind].append(row)
        kinds = self._stores.result_kinds
        is_delivered = any(kinds[name].delivered_as for name in by_kind)
        webhooks = self._stores.webhooks.all() if is_delivered else []
        now_us = self._clock.now_us()
        for name in sorted(by_kind, key=list(kinds).index):  # writes alerts before results that refer to them
            self._write(kinds[name], by_kind[name], webhooks, now_us, epoch_id)
        if suppressed := by_kind.get(SUPPRESSED.name):
            self._stores.incidents.count_suppressed([row.body for row in suppressed])

    def _write(
        self,
        kind: ResultKind,
        rows: Sequence[OutputRow],
        webhooks: Sequence[RegisteredWebhook],
        now_us: int,
        epoch_id: int,
    ) -> None:
        if kind.stops:
            rows = self._suspending(rows)
        if not rows:
            return
        severities: Mapping[str, str] | None = None
        if kind.graded_by:
            severities = self._stores.registry.severities(kind.graded_by, {row.subject for row in rows})
        if kind is DEAD_LETTER:
            _log_given_up(rows)
        if kind is ANSWER:
            self._stores.questions.keep(rows)
        elif kind is ALERT:
            self._write_alerts(rows, webhooks, now_us, epoch_id, severities)
        elif kind.counts_for:
            self._stores.results[kind.counts_for].count(rows, epoch_id)
        else:
            self._stores.results[kind.name].append(rows, epoch_id, webhooks, now_us, severities)
            if kind in INCIDENT_CHANGES:
                self._stores.incidents.note(Writing(epoch=epoch_id, severities=severities).bodies(rows))

    def _write_alerts(
        self,
        alerts: Sequence[OutputRow],
        webhooks: Sequence[RegisteredWebhook],
        now_us: int,
        epoch_id: int,
        severities: Mapping[str, str] | None,
    ) -> None:
        """If writing fails, the alerts' spans do not end and are not exported."""
        spans = {} if self._spans is None else self._spans.begin(alerts)
        parents = {alert: span.traceparent for alert, span in spans.items()}
        if self._stores.alerts.append(alerts, webhooks, now_us, epoch_id, parents, severities):
            arrivals_us = (1_000 * int(row.position.partition("-")[0]) for row in alerts)
            self._stores.latencies.note("alert", (now_us - arrival_us for arrival_us in arrivals_us))
        for span in spans.values():
            span.end()

    def _suspending(self, rows: Sequence[OutputRow]) -> list[OutputRow]:
        """Suspend operators in all shards, and return the reports that had an effect.

        Each of ``rows`` is the report of a shard that has suspended an operator.
        """
        bodies = {id(row): orjson.loads(row.body) for row in rows}
        suspended_rows = [row for row in rows if self._stores.registry.suspend(bodies[id(row)])]
        for row in suspended_rows:
            report = bodies[id(row)]
            fields = {name: report[name] for name in ("pattern", "version", "shard", "reason")}
            kind = report.get("operator", "pattern")
            structlog.get_logger(__name__).warning(f"{kind}-suspended", stream=row.stream, **fields)
        return suspended_rows


class AlertSpans:
    """Starts spans for alerts. Each span belongs to the trace of the request that sent the last event of the match."""

    def __init__(self, spans: Spans, contexts: RequestContextStore) -> None:
        self._spans = spans
        self._contexts = contexts

    def begin(self, rows: Sequence[OutputRow]) -> Mapping[str, OpenSpan]:
        """Start a span for each alert whose last event was sent by a traced request. Return the spans by alert id."""
        by_stream: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            by_stream[row.stream].append(orjson.loads(row.body))
        spans: dict[str, OpenSpan] = {}
        for stream, alerts in by_stream.items():
            events = dict.fromkeys(event for alert in alerts for event in _events_of(alert))
            contexts = self._contexts.find(stream, list(events))
            for alert in alerts if contexts else ():
                alert_contexts = [contexts[event] for event in _events_of(alert) if event in contexts]
                if (last := _last_request(alert, alert_contexts)) is not None:
                    spans[alert["id"]] = self._begin(alert, last, alert_contexts)
        return spans

    def _begin(self, alert: Mapping[str, Any], last: RequestContext, contexts: Iterable[RequestContext]) -> OpenSpan:
        traceparents = dict.fromkeys(
            context.traceparent for context in contexts if context.traceparent != last.traceparent
        )
        return self._spans.begin(
            f"alert {alert['pattern']}",
            last.traceparent,
            {
                "forestall.alert.id": alert["id"],
                "forestall.stream": alert["stream"],
                "forestall.pattern": alert["pattern"],
                "forestall.pattern.version": alert["version"],
                "forestall.key": alert["key"],
                "forestall.shard": last.shard,
                "forestall.log.position": last.position,
            },
            start_us=last.taken_us,
            links=list(traceparents)[:_MOST_LINKS],
        )


def _events_of(alert: Mapping[str, Any]) -> list[str]:
    return [event for events in alert["bindings"].values() for event in events]


def _last_request(alert: Mapping[str, Any], contexts: Iterable[RequestContext]) -> RequestContext | None:
    """Return the traced request that sent the last event of a match, or None if that request was not traced.

    If several events of the match have the latest time, the event that was appended last counts.
    """
    end_us = parse_time(alert["end"])
    ending = [context for context in contexts if context.time_us == end_us]
    return max(ending, key=lambda context: context.taken_us, default=None)


def _log_given_up(dead_letters: Sequence[OutputRow]) -> None:
    for row in dead_letters:
        letter = orjson.loads(row.body)
        if letter["code"] == "work-limit":
            structlog.get_logger(__name__).warning(
                "pattern-given-up",
                stream=row.stream,
                shard=row.shard,
                dead_letter=row.id,
                **{name: letter[name] for name in ("pattern", "version", "key", "event_id", "work")},
            )


def append_derived(store: DerivedEventStore, rows: Sequence[OutputRow], reports: Sequence[OutputRow]) -> None:
    """Append the derived events of a micro-batch to the log, and then the ticks that advance their streams.

    A tick is a record of the log without an event. ``rows`` are of the kind ``rekeyed``, sorted by shard and position.
    ``reports`` has one row of the kind ``stats`` for each shard. If the call is repeated with the same rows, no event
    is appended again. If the log is being resharded, or was resharded since this process read its layout, raise
    ``LogResharding``.
    """
    shards = {row.shard: orjson.loads(row.body) for row in reports}
    ends = {row.shard: row.position for row in reports}
    parts = {
        stream: [
            _part(shard, shards[shard]["after"], ends[shard], rows_by_shard[shard]) for shard in sorted(rows_by_shard)
        ]
        for stream, rows_by_shard in _by_stream(rows).items()
    }
    promises = _promises(shards)
    if parts or promises:
        store.write(parts, promises, ends)


def _by_stream(rows: Sequence[OutputRow]) -> dict[str, dict[int, list[OutputRow]]]:
    """Group rows by derived stream, and then by the shard that has emitted them."""
    rows_by_stream: defaultdict[str, defaultdict[int, list[OutputRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        rows_by_stream[row.subject][row.shard].append(row)
    return {stream: dict(rows_by_stream[stream]) for stream in sorted(rows_by_stream)}


def _part(shard: int, after: str, until: str, rows: Sequence[OutputRow]) -> DerivedPart:
    """Build a part with its events sorted by time and id, so that the part does not depend on the order of matching."""
    batches = [EventBatch.from_bytes(row.body) for row in rows]
    events = EventBatch.joined(batches)
    order = events.order_by_time()
    positions = np.repeat([row.position for row in rows], [len(batch) for batch in batches])[order]
    return DerivedPart(shard=shard, after=after, until=until, events=events.take(order), positions=positions.tolist())


def _promises(shards: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[int, int | None]]:
    """Return the promises in the shards' reports, by derived stream and shard. None means no promise yet."""
    promises: defaultdict[str, dict[int, int | None]] = defaultdict(dict)
    for shard, report in shards.items():
        for stream, time_us in report.get("promises", {}).items():
            promises[stream][shard] = time_us
    return {stream: promises[stream] for stream in sorted(promises)}
