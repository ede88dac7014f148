"""The stores of a running service, opened as its settings say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
    DeadLetterStore,
    DeciderStore,
    DeliveryStore,
    DerivedEventStore,
    EventLog,
    FeedStore,
    Heartbeat,
    HourlyCounts,
    IncidentStore,
    KeyStore,
    LatencyStore,
    PipelineStatus,
    ProjectStore,
    QuestionStore,
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


class Stores:
    """All stores of the service, on one Redis client. Creating the stores sends no command to Redis.

    ``url`` may contain a password. ``results`` maps the name of each result kind to its list, except for alerts, which
    have their own log.
    """

    def __init__(
        self, client: Client, url: str, settings: Settings, result_kinds: Mapping[str, ResultKind] = RESULT_KINDS
    ) -> None:
        kept = settings.limits.recent_kept
        listed_kinds = [kind for kind in result_kinds.values() if kind.plural and kind is not ALERT]
        recent_stores = {kind.name: RecentStore(client, kind, kept=kept) for kind in listed_kinds}
        self.url = url
        self.client = client
        self.result_kinds = result_kinds
        self.log = log = EventLog(client, settings.shards, settings.limits, settings.tracing)
        self.registry = registry = Registry(client, log, settings.pattern_work.budget)
        self.announcements = Announcements(client, log)
        self.answers = AnswerStore(client, life_s=settings.limits.idempotency_life_s)
        self.questions = QuestionStore(client)
        self.alerts = AlertStore(client, kept=settings.limits.alerts_kept)
        self.dead_letters = DeadLetterStore(client, kept=kept)
        self.results: Mapping[str, RecentStore] = {**recent_stores, DEAD_LETTER.name: self.dead_letters}
        self.incidents = IncidentStore(client, kept=kept)
        self.feeds = FeedStore(client)
        self.event_pages = pages_of_any(client, log.layout, lambda name: registry.stream(name).derived)
        self.deliveries = DeliveryStore(client, settings.webhooks, given_up_kept=kept)
        self.webhooks = WebhookStore(client)
        self.workflows = WorkflowStore(client)
        self.tables = TableStore(client, log)
        self.projects = ProjectStore(client)
        self.heartbeat = Heartbeat(client)
        self.backlog = BacklogStore(client)
        self.backtests = BacktestStore(client, kept=settings.limits.backtests_kept)
        self.pipeline_status = PipelineStatus(client)
        self.stream_times = StreamTimesStore(client)
        self.derived = DerivedEventStore(client, log.layout)
        self.deciders = DeciderStore(client, log.layout)
        self.request_contexts = RequestContextStore(client, settings.tracing)
        self.keys = KeyStore(client)
        self.audit = AuditLog(client, kept=kept)
        self.latencies = LatencyStore(client)
        self.hours = HourlyCounts(client)

    def attempts(self, webhook_id: str) -> RecentList:
        """Return the newest attempts to deliver to a webhook. Each record has the members of an ``Attempt``."""
        return RecentList(self.client, LOG_KEY + webhook_id, kept=0)

    def counts_of(self, kind: ResultKind) -> list[dict[str, Any]]:
        """Return the counts of all results of a kind, grouped by the fields in the kind's ``counted_by``."""
        if kind is not ALERT:
            return self.results[kind.name].counts()
        counts = self.alerts.counts().items()
        return [{**dict(zip(kind.counted_by, place, strict=True)), "count": count} for place, count in counts]


@contextmanager
def open_stores(
    settings: Settings, *, as_it_is: bool = False, result_kinds: Mapping[str, ResultKind] = RESULT_KINDS
) -> Iterator[Stores]:
    """Open the stores that the settings name. The stored data is migrated first, unless ``as_it_is``.

    Without a Redis URL, the stores use the private server of the data folder. If that server does not run, it is
    started, and it is stopped when the block ends. An external server that does not answer raises no error here.
    """
    with ExitStack() as ends:
        if settings.redis_url is None:
            server = EmbeddedServer(settings.data_dir)
            url = server.start()
            ends.callback(server.stop)
        else:
            url = settings.redis_url.get_secret_value()
        client = ends.enter_context(connect(url))
        try:
            if not as_it_is:
                bring_up_to_date(client)
        except StoreUnavailable as error:
            if settings.redis_url is None:
                raise
            # The external server may answer later. Records of another format are then refused one by one.
            structlog.get_logger(__name__).warning("store-not-looked-at", error=error.message)
        yield Stores(client, url, settings, result_kinds)
