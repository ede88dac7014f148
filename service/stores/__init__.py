"""What the service keeps in Redis; the only importer of ``redis`` in ``service``.

Each store is handed a client. Every change of more than one key is one atomic Lua script, and every script may run
twice without harm, as a client sends a command again when its answer was lost on the way.
"""

from service.stores.alert_marks import Acknowledgement, AlertMarks, Note
from service.stores.alerts import AlertFilter, AlertPage, AlertStore
from service.stores.announcements import Announcements
from service.stores.answers import Answer, AnswerStore, Asked
from service.stores.audit import AuditEntry, AuditLog
from service.stores.backlog import BacklogStore
from service.stores.backtests import Backtest, BacktestAlerts, BacktestStatus, BacktestStore
from service.stores.conditions import ANY, Condition, tag_of
from service.stores.connection import Client, connect, is_answering, server_folder
from service.stores.corrections import CorrectionStore
from service.stores.dead_letters import DeadLetter, DeadLetterStore, ReplayOutcome
from service.stores.deliveries import Delivery, Outcome
from service.stores.delivery_log import Attempt, AttemptPage, DeliveryLog
from service.stores.delivery_queue import Circuit, DeliveryStore, QueueRules
from service.stores.deviations import DeviationStore
from service.stores.endings import EndingStore
from service.stores.event_log import EventLog, LogLimits, Receipt, Submission
from service.stores.event_types import EventType, EventTypeStore, SchemaUse
from service.stores.feeds import FeedMark, FeedStep, FeedStore
from service.stores.heartbeat import Heartbeat
from service.stores.keys import ApiKey, KeyStore, Scope
from service.stores.keyspace import KeyPart, Keyspace
from service.stores.layout import Layout, LayoutStore
from service.stores.log_tail import LogTail
from service.stores.pattern_states import PatternAction
from service.stores.pipeline_status import PipelineStatus, ReportRow, ShardReport, StreamReport
from service.stores.recent import RecentPage, RecentStore, Row
from service.stores.registered import (
    ConstraintsDraft,
    Following,
    FollowMode,
    PatternState,
    RegisteredConstraints,
    RegisteredPattern,
)
from service.stores.registry import PatternDraft, Registry
from service.stores.request_contexts import ContextLimits, RequestContext, RequestContextStore
from service.stores.server_facts import ServerFacts, server_facts, server_time_us
from service.stores.severities import SEVERITIES, USUAL_SEVERITY, Severity
from service.stores.store_format import FIRST_FORMAT, StoreFormat
from service.stores.stream_times import StreamTimes, StreamTimesStore
from service.stores.timeouts import TimeoutStore
from service.stores.webhooks import (
    USUAL_KINDS,
    DeliveredKind,
    DeliveryStats,
    RegisteredWebhook,
    RetiringSecret,
    WebhookStore,
)
from service.stores.workflows import RegisteredWorkflow, WorkflowDraft, WorkflowStore, WorkflowSummary

__all__ = [
    "ANY",
    "FIRST_FORMAT",
    "SEVERITIES",
    "USUAL_KINDS",
    "USUAL_SEVERITY",
    "Acknowledgement",
    "AlertFilter",
    "AlertMarks",
    "AlertPage",
    "AlertStore",
    "Announcements",
    "Answer",
    "AnswerStore",
    "ApiKey",
    "Asked",
    "Attempt",
    "AttemptPage",
    "AuditEntry",
    "AuditLog",
    "BacklogStore",
    "Backtest",
    "BacktestAlerts",
    "BacktestStatus",
    "BacktestStore",
    "Circuit",
    "Client",
    "Condition",
    "ConstraintsDraft",
    "ContextLimits",
    "CorrectionStore",
    "DeadLetter",
    "DeadLetterStore",
    "DeliveredKind",
    "Delivery",
    "DeliveryLog",
    "DeliveryStats",
    "DeliveryStore",
    "DeviationStore",
    "EndingStore",
    "EventLog",
    "EventType",
    "EventTypeStore",
    "FeedMark",
    "FeedStep",
    "FeedStore",
    "FollowMode",
    "Following",
    "Heartbeat",
    "KeyPart",
    "KeyStore",
    "Keyspace",
    "Layout",
    "LayoutStore",
    "LogLimits",
    "LogTail",
    "Note",
    "Outcome",
    "PatternAction",
    "PatternDraft",
    "PatternState",
    "PipelineStatus",
    "QueueRules",
    "Receipt",
    "RecentPage",
    "RecentStore",
    "RegisteredConstraints",
    "RegisteredPattern",
    "RegisteredWebhook",
    "RegisteredWorkflow",
    "Registry",
    "ReplayOutcome",
    "ReportRow",
    "RequestContext",
    "RequestContextStore",
    "RetiringSecret",
    "Row",
    "SchemaUse",
    "Scope",
    "ServerFacts",
    "Severity",
    "ShardReport",
    "StoreFormat",
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
    "server_facts",
    "server_folder",
    "server_time_us",
    "tag_of",
]
