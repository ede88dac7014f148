"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .alert_marks import Acknowledgement, AlertMarks, Note
from .alerts import AlertFilter, AlertPage, AlertStore
from .announcements import Announcements
from .answers import Answer, AnswerStore, Asked
from .audit import AuditEntry, AuditLog
from .backlog import BacklogStore
from .backtests import Backtest, BacktestAlerts, BacktestStatus, BacktestStore
from .conditions import ANY, Condition, tag_of
from .connection import Client, connect, is_answering, server_folder
from .corrections import CorrectionStore
from .dead_letters import DeadLetter, DeadLetterStore, ReplayOutcome
from .deliveries import Delivery, Outcome
from .delivery_log import Attempt, AttemptPage, DeliveryLog
from .delivery_queue import Circuit, DeliveryStore, QueueRules
from .deviations import DeviationStore
from .endings import EndingStore
from .event_ids import DuplicateStore, IdLimits, event_digest
from .event_log import EventLog, LogLimits, Receipt, Submission
from .event_types import EventType, EventTypeStore, SchemaUse
from .feeds import FeedMark, FeedStep, FeedStore
from .heartbeat import Heartbeat
from .keys import ApiKey, KeyStore, Scope
from .keyspace import KeyPart, Keyspace
from .layout import Layout, LayoutStore
from .log_tail import LogTail
from .pattern_states import PatternAction
from .pipeline_status import PipelineStatus, ReportRow, ShardReport, StreamReport
from .recent import RecentPage, RecentStore, Row
from .registered import (
    ConstraintsDraft,
    Following,
    FollowMode,
    PatternState,
    RegisteredConstraints,
    RegisteredPattern,
)
from .registry import PatternDraft, Registry
from .request_contexts import ContextLimits, RequestContext, RequestContextStore
from .server_facts import ServerFacts, server_facts, server_time_us
from .severities import SEVERITIES, USUAL_SEVERITY, Severity
from .store_format import FIRST_FORMAT, StoreFormat
from .stream_times import StreamTimes, StreamTimesStore
from .suspensions import SuspensionStore
from .timeouts import TimeoutStore
from .webhooks import (
    USUAL_KINDS,
    DeliveredKind,
    DeliveryStats,
    RegisteredWebhook,
    RetiringSecret,
    WebhookStore,
)
from .workflows import RegisteredWorkflow, WorkflowDraft, WorkflowStore, WorkflowSummary

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
    "DuplicateStore",
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
    "IdLimits",
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
    "SuspensionStore",
    "TimeoutStore",
    "WebhookStore",
    "WorkflowDraft",
    "WorkflowStore",
    "WorkflowSummary",
    "connect",
    "event_digest",
    "is_answering",
    "server_facts",
    "server_folder",
    "server_time_us",
    "tag_of",
]
