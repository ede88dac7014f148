"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .answers import Answer, AnswerStore, Asked
from .audit import AuditEntry, AuditLog
from .conditions import ANY, Condition, tag_of
from .connection import Client, connect, is_answering, server_folder
from .cursors import Cursor, Order
from .deliveries.delivery import DIGEST, Delivery, DeliveryOutcome
from .deliveries.delivery_queue import Circuit, CollectedResult, DeliveryStore, QueueRules
from .deliveries.log import Attempt, DeliveryLog
from .deliveries.webhooks import (
    DeliveryStats,
    DigestRules,
    RegisteredWebhook,
    RetiringSecret,
    WebhookStore,
)
from .heartbeat import Heartbeat
from .keyspace import KeyPart, Keyspace
from .latencies import BOUNDS_S, Latencies, LatencyStore
from .log.announcements import Announcements
from .log.backlog import BacklogStore
from .log.dead_letters import DeadLetter, DeadLetterStore, ReplayOutcome
from .log.deciders import DeciderRecord, DeciderStore, Decision
from .log.derived import DerivedEventStore, DerivedPart
from .log.derived_pages import DerivedEventPages, pages_of_any
from .log.event_ids import DuplicateStore, IdLimits, event_digest
from .log.event_log import EventLog, LogLimits, Receipt, Submission
from .log.event_pages import EventFilter, EventPage, EventPages, LogEventPages
from .log.feeds import FeedMark, FeedStep, FeedStore
from .log.layout import Layout, LayoutStore
from .log.pipeline_status import ExecutorReport, HostCost, PipelineStatus, ShardReport, StreamReport
from .log.stream_times import StreamTimes, StreamTimesStore
from .log.tail import LogTail
from .questions import QuestionStore
from .registry.drafts import OperatorDraft, pattern_draft
from .registry.event_types import EventType, EventTypeStore, SchemaUse
from .registry.keys import ApiKey, KeyStore, Scope
from .registry.life_cycle import Action
from .registry.operators import Operators
from .registry.projects import ProjectRecord, ProjectStore
from .registry.registered import (
    ConstraintsDraft,
    Feeder,
    Following,
    FollowMode,
    OperatorPart,
    RegisteredConstraints,
    RegisteredOperator,
    RegisteredPattern,
    State,
    pattern_parts,
)
from .registry.registry import Registry
from .registry.removal import StreamUse
from .registry.tables import RegisteredTable, TableStore
from .registry.workflows import RegisteredWorkflow, WorkflowDraft, WorkflowStore, WorkflowSummary
from .request_contexts import ContextLimits, RequestContext, RequestContextStore
from .results.alerts import AlertFilter, AlertPage, AlertStore
from .results.backtests import Backtest, BacktestAlerts, BacktestStatus, BacktestStore
from .results.incidents import IncidentPage, IncidentStore
from .results.marks import Acknowledgement, AlertMarks, Note
from .results.recent import RecentList, RecentPage, RecentStore
from .results.single_alerts import move_to_blocks
from .results.writing import Writing
from .server_facts import ServerFacts, server_facts, server_time_us
from .severities import SEVERITIES, USUAL_SEVERITY, Severity
from .store_format import FIRST_FORMAT, StoreFormat

__all__ = [
    "ANY",
    "BOUNDS_S",
    "DIGEST",
    "FIRST_FORMAT",
    "SEVERITIES",
    "USUAL_SEVERITY",
    "Acknowledgement",
    "Action",
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
    "AuditEntry",
    "AuditLog",
    "BacklogStore",
    "Backtest",
    "BacktestAlerts",
    "BacktestStatus",
    "BacktestStore",
    "Circuit",
    "Client",
    "CollectedResult",
    "Condition",
    "ConstraintsDraft",
    "ContextLimits",
    "Cursor",
    "DeadLetter",
    "DeadLetterStore",
    "DeciderRecord",
    "DeciderStore",
    "Decision",
    "Delivery",
    "DeliveryLog",
    "DeliveryOutcome",
    "DeliveryStats",
    "DeliveryStore",
    "DerivedEventPages",
    "DerivedEventStore",
    "DerivedPart",
    "DigestRules",
    "DuplicateStore",
    "EventFilter",
    "EventLog",
    "EventPage",
    "EventPages",
    "EventType",
    "EventTypeStore",
    "ExecutorReport",
    "FeedMark",
    "FeedStep",
    "FeedStore",
    "Feeder",
    "FollowMode",
    "Following",
    "Heartbeat",
    "HostCost",
    "IdLimits",
    "IncidentPage",
    "IncidentStore",
    "KeyPart",
    "KeyStore",
    "Keyspace",
    "Latencies",
    "LatencyStore",
    "Layout",
    "LayoutStore",
    "LogEventPages",
    "LogLimits",
    "LogTail",
    "Note",
    "OperatorDraft",
    "OperatorPart",
    "Operators",
    "Order",
    "PipelineStatus",
    "ProjectRecord",
    "ProjectStore",
    "QuestionStore",
    "QueueRules",
    "Receipt",
    "RecentList",
    "RecentPage",
    "RecentStore",
    "RegisteredConstraints",
    "RegisteredOperator",
    "RegisteredPattern",
    "RegisteredTable",
    "RegisteredWebhook",
    "RegisteredWorkflow",
    "Registry",
    "ReplayOutcome",
    "RequestContext",
    "RequestContextStore",
    "RetiringSecret",
    "SchemaUse",
    "Scope",
    "ServerFacts",
    "Severity",
    "ShardReport",
    "State",
    "StoreFormat",
    "StreamReport",
    "StreamTimes",
    "StreamTimesStore",
    "StreamUse",
    "Submission",
    "TableStore",
    "WebhookStore",
    "WorkflowDraft",
    "WorkflowStore",
    "WorkflowSummary",
    "Writing",
    "connect",
    "event_digest",
    "is_answering",
    "move_to_blocks",
    "pages_of_any",
    "pattern_draft",
    "pattern_parts",
    "server_facts",
    "server_folder",
    "server_time_us",
    "tag_of",
]
