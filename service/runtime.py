"""The stores of a running service, opened from its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from service.embedded import EmbeddedServer
from service.errors import StoreUnavailable
from service.migrations import bring_up_to_date
from service.settings import Settings
from service.stores import (
    AlertStore,
    Announcements,
    AnswerStore,
    AuditLog,
    BacklogStore,
    BacktestStore,
    Client,
    ContextLimits,
    DeadLetterStore,
    DeciderStore,
    DeliveryLog,
    DeliveryStore,
    DerivedEventStore,
    DuplicateStore,
    EventLog,
    EventPages,
    FeedStore,
    Heartbeat,
    HourlyCounts,
    IdLimits,
    IncidentStore,
    KeyStore,
    LatencyStore,
    LogLimits,
    PipelineStatus,
    ProjectStore,
    QuestionStore,
    QueueRules,
    RecentList,
    RecentStore,
    Registry,
    RequestContextStore,
    StreamTimesStore,
    TableStore,
    WebhookStore,
    WorkflowStore,
    connect,
    pages_of_any,
)
from service.stores.deliveries.webhooks import LOG_KEY
from shards import ALERT, DEAD_LETTER, RESULT_KINDS, ResultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """All stores of the service, on one client; the URL may hold a password.

    ``results`` has the lists of results by the names of their kinds; alerts have a log of their own.
    """

    url: str
    client: Client
    result_kinds: Mapping[str, ResultKind]
    log: EventLog
    registry: Registry
    announcements: Announcements
    answers: AnswerStore
    questions: QuestionStore
    alerts: AlertStore
    results: Mapping[str, RecentStore]
    incidents: IncidentStore
    dead_letters: DeadLetterStore
    feeds: FeedStore
    event_pages: EventPages
    deliveries: DeliveryStore
    delivery_log: DeliveryLog
    webhooks: WebhookStore
    workflows: WorkflowStore
    tables: TableStore
    projects: ProjectStore
    heartbeat: Heartbeat
    backlog: BacklogStore
    backtests: BacktestStore
    pipeline_status: PipelineStatus
    stream_times: StreamTimesStore
    derived: DerivedEventStore
    deciders: DeciderStore
    request_contexts: RequestContextStore
    duplicates: DuplicateStore
    keys: KeyStore
    audit: AuditLog
    latencies: LatencyStore
    hours: HourlyCounts

    def attempts(self, webhook_id: str) -> RecentList:
        """The list of the latest attempts of a webhook, each a record with the members of an ``Attempt``."""
        return RecentList(self.client, LOG_KEY + webhook_id, kept=0)

    def counts_of(self, kind: ResultKind) -> list[dict[str, Any]]:
        """The counters of a listed kind of result: its fields, and ``count`` since the store began."""
        if kind is not ALERT:
            return self.results[kind.name].counts()
        counts = self.alerts.counts().items()
        return [{**dict(zip(kind.counted_by, place, strict=True)), "count": count} for place, count in counts]


def build_stores(
    client: Client, url: str, settings: Settings, result_kinds: Mapping[str, ResultKind] = RESULT_KINDS
) -> Stores:
    """The stores behind a client of ``url``; sends no command."""
    kept = settings.limits.recent_kept
    dead_letters = DeadLetterStore(client, kept=kept)
    in_lists = [kind for kind in result_kinds.values() if kind.plural and kind is not ALERT]
    listed = {kind.name: RecentStore(client, kind, kept=kept) for kind in in_lists}
    contexts = ContextLimits(life_s=settings.tracing.remember_s, most=settings.tracing.remember_events)
    log = EventLog(client, settings.shards, _log_limits(settings, contexts))
    registry = Registry(client, log, settings.pattern_work.budget)
    return Stores(
        url=url,
        client=client,
        result_kinds=result_kinds,
        log=log,
        registry=registry,
        announcements=Announcements(client, log),
        answers=AnswerStore(client, life_s=settings.limits.idempotency_life_s),
        questions=QuestionStore(client),
        alerts=AlertStore(client, kept=settings.limits.alerts_kept),
        results={**listed, DEAD_LETTER.name: dead_letters},
        incidents=IncidentStore(client, kept=kept),
        dead_letters=dead_letters,
        feeds=FeedStore(client),
        event_pages=pages_of_any(client, log.layout, lambda name: registry.stream(name).derived),
        deliveries=DeliveryStore(client, _queue_rules(settings)),
        delivery_log=DeliveryLog(client),
        webhooks=WebhookStore(client),
        workflows=WorkflowStore(client),
        tables=TableStore(client, log),
        projects=ProjectStore(client),
        heartbeat=Heartbeat(client),
        backlog=BacklogStore(client),
        backtests=BacktestStore(client, kept=settings.limits.backtests_kept),
        pipeline_status=PipelineStatus(client),
        stream_times=StreamTimesStore(client),
        derived=DerivedEventStore(client, log.layout),
        deciders=DeciderStore(client, log.layout),
        request_contexts=RequestContextStore(client, contexts),
        duplicates=DuplicateStore(client),
        keys=KeyStore(client),
        audit=AuditLog(client, kept=kept),
        latencies=LatencyStore(client),
        hours=HourlyCounts(client),
    )


def _log_limits(settings: Settings, contexts: ContextLimits) -> LogLimits:
    limits = settings.limits
    return LogLimits(
        answer_life_s=limits.idempotency_life_s,
        dead_letters_kept=limits.recent_kept,
        max_backlog_events=limits.max_backlog_events,
        max_log_bytes=limits.max_log_bytes,
        contexts=contexts,
        ids=IdLimits(kept=limits.event_ids_kept, life_s=limits.event_id_life_s),
    )


def _queue_rules(settings: Settings) -> QueueRules:
    webhooks = settings.webhooks
    return QueueRules(
        per_target=webhooks.target_concurrency,
        circuit_failures=webhooks.circuit_failures,
        circuit_pause_us=round(webhooks.circuit_pause_s * 1_000_000),
        given_up_kept=settings.limits.recent_kept,
        log_kept=webhooks.log_kept,
        most_waiting=webhooks.max_waiting,
    )


@contextmanager
def open_stores(
    settings: Settings, *, as_it_is: bool = False, result_kinds: Mapping[str, ResultKind] = RESULT_KINDS
) -> Iterator[Stores]:
    """The stores that the settings name, while the block runs; stored data is migrated first, unless ``as_it_is``.

    Without a Redis URL the private server of the data folder is used, and started (and at the end stopped) if it does
    not run. An external server that does not answer is no error here.
    """
    if settings.redis_url is not None:
        url = settings.redis_url.get_secret_value()
        with connect(url) as client:
            if not as_it_is:
                _bring_up_to_date(client)
            yield build_stores(client, url, settings, result_kinds)
        return
    server = EmbeddedServer(settings.data_dir)
    url = server.start()
    try:
        with connect(url) as client:
            if not as_it_is:
                bring_up_to_date(client)
            yield build_stores(client, url, settings, result_kinds)
    finally:
        server.stop()


def _bring_up_to_date(client: Client) -> None:
    """As ``bring_up_to_date``; while the server is away, records of another format are refused one by one."""
    try:
        bring_up_to_date(client)
    except StoreUnavailable as error:
        structlog.get_logger(__name__).warning("store-not-looked-at", error=error.message)
