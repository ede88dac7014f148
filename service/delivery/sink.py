"""Where the pipeline's rows go: each kind into its store, and what webhooks want into the queue of deliveries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import structlog

from service.delivery.alert_spans import AlertSpans
from service.runtime import Stores
from service.stores import USUAL_SEVERITY, RegisteredWebhook, Severity
from streams import Clock

if TYPE_CHECKING:
    from service.observing.spans import Spans
    from shards import OutputRow  # brings Spark, which the API does without

_DELIVERED = {"alert", "correction", "deviation", "suspension"}
_GRADED = {"alert", "correction"}


class AlertSink:
    """Writes the rows of a micro-batch; writing them again changes nothing.

    Args:
        stores: Where they go.
        clock: Tells when new deliveries are due: now.
        spans: For alerts whose last event a traced request brought; None: nothing is traced.
    """

    def __init__(self, stores: Stores, clock: Clock, spans: Spans | None = None) -> None:
        self._stores = stores
        self._clock = clock
        self._spans = None if spans is None else AlertSpans(spans, stores.request_contexts)

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        """Write the rows of micro-batch ``epoch_id``, or a part of them.

        Raises:
            StoreUnavailable: Redis does not answer; the same call may be made again.
        """
        told = [row for row in rows if row.kind == "stats"]
        self._store([row for row in rows if row.kind != "stats"], epoch_id)
        self._stores.pipeline_status.note(told)  # last: what counts as matched has its alerts written

    def _store(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        if not rows:
            return
        by_kind: defaultdict[str, list[OutputRow]] = defaultdict(list)
        for row in rows:
            by_kind[row.kind].append(row)
        for kind in by_kind.keys() & _GRADED:
            by_kind[kind] = self._graded(by_kind[kind])
        webhooks = self._stores.webhooks.all() if by_kind.keys() & _DELIVERED else []
        now_us = self._clock.now_us()
        if alerts := by_kind.pop("alert", []):
            self._write_alerts(alerts, webhooks, now_us, epoch_id)
        if suspended := by_kind.pop("suspension", []):
            self._suspend(suspended, webhooks, now_us, epoch_id)
        _log_given_up(by_kind.get("dead-letter", ()))
        recent = {
            "timeout": self._stores.timeouts,
            "ending": self._stores.endings,
            "deviation": self._stores.deviations,
            "correction": self._stores.corrections,
            "dead-letter": self._stores.dead_letters,
        }
        if counted := by_kind.pop("ending-count", []):
            self._stores.endings.count(counted, epoch_id)
        for kind, listed in by_kind.items():
            recent[kind].append(listed, epoch_id, webhooks, now_us)

    def _write_alerts(
        self, alerts: Sequence[OutputRow], webhooks: Sequence[RegisteredWebhook], now_us: int, epoch_id: int
    ) -> None:
        """Write alerts; their spans end when they are in the log, and are never told where they do not get there."""
        spans = {} if self._spans is None else self._spans.begin(alerts)
        parents = {alert: span.traceparent for alert, span in spans.items()}
        self._stores.alerts.append(alerts, webhooks, now_us, epoch_id, parents)
        for span in spans.values():
            span.end()

    def _suspend(
        self, rows: Sequence[OutputRow], webhooks: Sequence[RegisteredWebhook], now_us: int, epoch_id: int
    ) -> None:
        """Let all shards stop matching patterns of which one says so; of several that say so of one, one is told."""
        standing = [row for row in rows if self._stores.registry.suspend_pattern(orjson.loads(row.body))]
        for row in standing:
            told = orjson.loads(row.body)
            fields = {name: told[name] for name in ("pattern", "version", "shard", "reason")}
            structlog.get_logger(__name__).warning("pattern-suspended", stream=row.stream, **fields)
        self._stores.suspensions.append(self._graded(standing), epoch_id, webhooks, now_us)

    def _graded(self, rows: Sequence[OutputRow]) -> list[OutputRow]:
        """Rows with the present severity of their patterns in their bodies; the log does not know it."""
        severities = self._stores.registry.severities()
        return [
            replace(row, body=_with_severity(row.body, severities.get(orjson.loads(row.body)["pattern"])))
            for row in rows
        ]


def _log_given_up(dead_letters: Sequence[OutputRow]) -> None:
    """Log where a pattern was given up in a trace; nobody has to read dead letters to see that matches are missing."""
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


def _with_severity(body: bytes, severity: Severity | None) -> bytes:
    """A JSON object with one more member at its end."""
    return body[:-1] + b',"severity":"%b"}' % (severity or USUAL_SEVERITY).encode()
