"""The stores of a running service, opened from its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    CorrectionStore,
    DeadLetterStore,
    DeliveryLog,
    DeliveryStore,
    DeviationStore,
    DuplicateStore,
    EndingStore,
    EventLog,
    FeedStore,
    Heartbeat,
    IdLimits,
    KeyStore,
    LogLimits,
    PipelineStatus,
    QueueRules,
    Registry,
    RequestContextStore,
    StreamTimesStore,
    SuspensionStore,
    TimeoutStore,
    WebhookStore,
    WorkflowStore,
    connect,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """All that the service keeps, on one client.

    Attributes:
        url: The Redis server behind them; may hold a password.
    """

    url: str
    client: Client
    log: EventLog
    registry: Registry
    announcements: Announcements
    answers: AnswerStore
    alerts: AlertStore
    timeouts: TimeoutStore
    endings: EndingStore
    deviations: DeviationStore
    corrections: CorrectionStore
    dead_letters: DeadLetterStore
    suspensions: SuspensionStore
    feeds: FeedStore
    deliveries: DeliveryStore
    delivery_log: DeliveryLog
    webhooks: WebhookStore
    workflows: WorkflowStore
    heartbeat: Heartbeat
    backlog: BacklogStore
    backtests: BacktestStore
    pipeline_status: PipelineStatus
    stream_times: StreamTimesStore
    request_contexts: RequestContextStore
    duplicates: DuplicateStore
    keys: KeyStore
    audit: AuditLog


def build_stores(client: Client, url: str, settings: Settings) -> Stores:
    """The stores behind a client of ``url``; sends no command."""
    kept = settings.limits.recent_kept
    tracing = settings.tracing
    contexts = ContextLimits(life_s=tracing.remember_s, most=tracing.remember_events)
    bounds = LogLimits(
        answer_life_s=settings.limits.idempotency_life_s,
        dead_letters_kept=kept,
        max_backlog_events=settings.limits.max_backlog_events,
        max_log_bytes=settings.limits.max_log_bytes,
        contexts=contexts,
        ids=IdLimits(kept=settings.limits.event_ids_kept, life_s=settings.limits.event_id_life_s),
    )
    log = EventLog(client, settings.shards, bounds)
    return Stores(
        url=url,
        client=client,
        log=log,
        registry=Registry(client, log, settings.pattern_work.budget),
        announcements=Announcements(client, log),
        answers=AnswerStore(client, life_s=settings.limits.idempotency_life_s),
        alerts=AlertStore(client, kept=settings.limits.alerts_kept),
        timeouts=TimeoutStore(client, kept=kept),
        endings=EndingStore(client, kept=kept),
        deviations=DeviationStore(client, kept=kept),
        corrections=CorrectionStore(client, kept=kept),
        dead_letters=DeadLetterStore(client, kept=kept),
        suspensions=SuspensionStore(client, kept=kept),
        feeds=FeedStore(client),
        deliveries=DeliveryStore(client, _queue_rules(settings)),
        delivery_log=DeliveryLog(client),
        webhooks=WebhookStore(client),
        workflows=WorkflowStore(client),
        heartbeat=Heartbeat(client),
        backlog=BacklogStore(client),
        backtests=BacktestStore(client, kept=settings.limits.backtests_kept),
        pipeline_status=PipelineStatus(client),
        stream_times=StreamTimesStore(client),
        request_contexts=RequestContextStore(client, contexts),
        duplicates=DuplicateStore(client),
        keys=KeyStore(client),
        audit=AuditLog(client, kept=kept),
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
def open_stores(settings: Settings, *, as_it_is: bool = False) -> Iterator[Stores]:
    """The stores that the settings name, for as long as the block runs; what is stored is brought up to date first.

    Without a Redis URL the private server of the data folder is used, and started (and at the end stopped) if it does
    not run. A server of one's own that does not answer yet is no error here.

    Args:
        settings: Name the server.
        as_it_is: Change nothing that is stored.

    Raises:
        StoreNewer: A newer release has written what is stored.
        BackupRefused: A backup was being restored and is not complete.
        NoServerBinary: There is neither a URL nor a server to start.
        EmbeddedServerFailed: The private server does not come up.
    """
    if settings.redis_url is not None:
        url = settings.redis_url.get_secret_value()
        with connect(url) as client:
            if not as_it_is:
                _bring_up_to_date(client)
            yield build_stores(client, url, settings)
        return
    server = EmbeddedServer(settings.data_dir)
    url = server.start()
    try:
        with connect(url) as client:
            if not as_it_is:
                bring_up_to_date(client)
            yield build_stores(client, url, settings)
    finally:
        server.stop()


def _bring_up_to_date(client: Client) -> None:
    """As ``bring_up_to_date``; while the server is away, records of another format are refused one by one."""
    try:
        bring_up_to_date(client)
    except StoreUnavailable as error:
        structlog.get_logger(__name__).warning("store-not-looked-at", error=error.message)
