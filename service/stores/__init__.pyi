"""Exports of the package; `__init__.py` loads each name on first use."""

from .answers import Answer as Answer, AnswerStore as AnswerStore, IdempotentRequest as IdempotentRequest
from .conditions import ANY as ANY, Condition as Condition, Record as Record, tag_of as tag_of
from .connection import (
    Client as Client,
    connect as connect,
    is_answering as is_answering,
    server_folder as server_folder,
)
from .cursors import Order as Order, Page as Page
from .deliveries.delivery import DIGEST as DIGEST, Delivery as Delivery, DeliveryOutcome as DeliveryOutcome
from .deliveries.delivery_queue import (
    Attempt as Attempt,
    Circuit as Circuit,
    DeliveryStore as DeliveryStore,
)
from .deliveries.webhooks import (
    DeliveryStats as DeliveryStats,
    DigestRules as DigestRules,
    RegisteredWebhook as RegisteredWebhook,
    RetiringSecret as RetiringSecret,
    WebhookStore as WebhookStore,
)
from .heartbeat import Heartbeat as Heartbeat
from .keyspace import KeyPart as KeyPart, Keyspace as Keyspace
from .latencies import BOUNDS_S as BOUNDS_S, Latencies as Latencies, LatencyStore as LatencyStore
from .log.announcements import Announcements as Announcements, QuestionStore as QuestionStore
from .log.backlog import BacklogStore as BacklogStore
from .log.dead_letters import (
    DeadLetter as DeadLetter,
    DeadLetterStore as DeadLetterStore,
    ReplayOutcome as ReplayOutcome,
)
from .log.deciders import DeciderRecord as DeciderRecord, DeciderStore as DeciderStore, Decision as Decision
from .log.derived import DerivedEventStore as DerivedEventStore, DerivedPart as DerivedPart
from .log.derived_pages import DerivedEventPages as DerivedEventPages, pages_of_any as pages_of_any
from .log.event_ids import event_digest as event_digest
from .log.event_log import EventLog as EventLog, Receipt as Receipt, Submission as Submission
from .log.event_pages import EventFilter as EventFilter
from .log.feeds import FeedMark as FeedMark, FeedStep as FeedStep, FeedStore as FeedStore
from .log.layout import Layout as Layout
from .log.pipeline_status import (
    ExecutorReport as ExecutorReport,
    HostCost as HostCost,
    PipelineStatus as PipelineStatus,
    ShardReport as ShardReport,
    StreamReport as StreamReport,
)
from .log.stream_times import StreamTimes as StreamTimes, StreamTimesStore as StreamTimesStore
from .registry.event_types import EventType as EventType
from .registry.keys import ApiKey as ApiKey, KeyStore as KeyStore, Scope as Scope
from .registry.life_cycle import Action as Action
from .record_books import Checks as Checks
from .registry.projects import ProjectRecord as ProjectRecord, ProjectStore as ProjectStore
from .registry.registered import (
    ConstraintsDraft as ConstraintsDraft,
    FirstState as FirstState,
    FollowMode as FollowMode,
    Following as Following,
    OperatorDraft as OperatorDraft,
    OperatorPart as OperatorPart,
    RegisteredConstraints as RegisteredConstraints,
    RegisteredOperator as RegisteredOperator,
    RegisteredPattern as RegisteredPattern,
    StreamRecord as StreamRecord,
    pattern_draft as pattern_draft,
    pattern_parts as pattern_parts,
)
from .registry.registry import Registry as Registry
from .registry.removal import StreamUse as StreamUse
from .registry.tables import RegisteredTable as RegisteredTable, TableStore as TableStore
from .registry.workflows import (
    RegisteredWorkflow as RegisteredWorkflow,
    WorkflowStore as WorkflowStore,
    WorkflowSummary as WorkflowSummary,
)
from .request_contexts import (
    RequestContext as RequestContext,
    RequestContextStore as RequestContextStore,
)
from .results.alerts import AlertFilter as AlertFilter, AlertStore as AlertStore
from .results.backtests import (
    Backtest as Backtest,
    BacktestStatus as BacktestStatus,
    BacktestStore as BacktestStore,
)
from .results.incidents import IncidentStore as IncidentStore
from .results.marks import Acknowledgement as Acknowledgement, Note as Note
from .results.recent import (
    AuditEntry as AuditEntry,
    AuditLog as AuditLog,
    RecentList as RecentList,
    RecentStore as RecentStore,
)
from .results.single_alerts import move_to_blocks as move_to_blocks
from .results.writing import Writing as Writing
from .server_facts import ServerFacts as ServerFacts, server_facts as server_facts, server_time_us as server_time_us
from .severities import Severity as Severity, USUAL_SEVERITY as USUAL_SEVERITY
from .store_format import FIRST_FORMAT as FIRST_FORMAT, FORMAT_KEY as FORMAT_KEY, StoreFormat as StoreFormat
from .results.hours import HourCount as HourCount, HourlyCounts as HourlyCounts
