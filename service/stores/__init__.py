"""What the service keeps in Redis; the only importer of ``redis`` in ``service``.

Each store is handed a client. Every change of more than one key is one atomic Lua script, and every script may run
twice without harm, as a client sends a command again when its answer was lost on the way.
"""

from service.stores.alerts import AlertPage, AlertStore
from service.stores.announcements import Announcements
from service.stores.audit import AuditEntry, AuditLog
from service.stores.backlog import BacklogStore
from service.stores.backtests import Backtest, BacktestAlerts, BacktestStatus, BacktestStore
from service.stores.connection import Client, connect, is_answering, server_folder
from service.stores.corrections import CorrectionStore
from service.stores.dead_letters import DeadLetter, DeadLetterStore
from service.stores.deliveries import Delivery, DeliveryStore, Outcome
from service.stores.deviations import DeviationStore
from service.stores.endings import EndingStore
from service.stores.event_log import EventLog, LogLimits, Receipt, Submission
from service.stores.feeds import FeedMark, FeedStep, FeedStore
from service.stores.heartbeat import Heartbeat
from service.stores.keys import ApiKey, KeyStore, Scope
from service.stores.layout import Layout, LayoutStore
from service.stores.pipeline_status import PipelineStatus, ReportRow, ShardReport, StreamReport
from service.stores.recent import RecentPage, RecentStore, Row
from service.stores.registered import (
    ConstraintsDraft,
    Following,
    FollowMode,
    RegisteredConstraints,
    RegisteredPattern,
)
from service.stores.registry import PatternDraft, Registry
from service.stores.stream_times import StreamTimes, StreamTimesStore
from service.stores.timeouts import TimeoutStore
from service.stores.webhooks import USUAL_KINDS, DeliveredKind, DeliveryStats, RegisteredWebhook, WebhookStore
from service.stores.workflows import RegisteredWorkflow, WorkflowDraft, WorkflowStore, WorkflowSummary

__all__ = [
    "USUAL_KINDS",
    "AlertPage",
    "AlertStore",
    "Announcements",
    "ApiKey",
    "AuditEntry",
    "AuditLog",
    "BacklogStore",
    "Backtest",
    "BacktestAlerts",
    "BacktestStatus",
    "BacktestStore",
    "Client",
    "ConstraintsDraft",
    "CorrectionStore",
    "DeadLetter",
    "DeadLetterStore",
    "DeliveredKind",
    "Delivery",
    "DeliveryStats",
    "DeliveryStore",
    "DeviationStore",
    "EndingStore",
    "EventLog",
    "FeedMark",
    "FeedStep",
    "FeedStore",
    "FollowMode",
    "Following",
    "Heartbeat",
    "KeyStore",
    "Layout",
    "LayoutStore",
    "LogLimits",
    "Outcome",
    "PatternDraft",
    "PipelineStatus",
    "Receipt",
    "RecentPage",
    "RecentStore",
    "RegisteredConstraints",
    "RegisteredPattern",
    "RegisteredWebhook",
    "RegisteredWorkflow",
    "Registry",
    "ReportRow",
    "Row",
    "Scope",
    "ShardReport",
    "StreamReport",
    "StreamTimes",
    "StreamTimesStore",
    "Submission",
    "TimeoutStore",
    "WebhookStore",
    "WorkflowDraft",
    "WorkflowStore",
    "WorkflowSummary",
    "connect",
    "is_answering",
    "server_folder",
]
