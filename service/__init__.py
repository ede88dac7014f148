"""The running service, without its HTTP face.

Purpose: settings, the private Redis server, the stores, what users register, the way of events into the log, the sink
of the rows, and the delivery of alerts. Promises: what was answered is in Redis, a control record and the
registry change together or not at all, every write of the pipeline may be repeated without harm, and an alert is
delivered at least once to every webhook that wanted it when it was found. Nothing here knows FastAPI.
"""

from service.announcing import Announcing
from service.backlog import Backlog, Volume
from service.backtests import BacktestDraft, BacktestLibrary, PatternChoice, Pruning
from service.dead_letters import DeadLetters, Replayed
from service.dry_runs import DryRun, DryRuns
from service.embedded import EmbeddedServer, find_server
from service.errors import (
    BatchTooLarge,
    Conflict,
    EmbeddedServerFailed,
    IdempotencyKeyReused,
    InvalidCursor,
    InvalidIdempotencyKey,
    InvalidWorkflowName,
    KeyMismatch,
    KeyRefused,
    KeyUnusable,
    LimitExceeded,
    LogFull,
    LogResharding,
    ModelTooLarge,
    NoServerBinary,
    NotFollowing,
    NotFound,
    PatternOnOtherStream,
    PatternTooLong,
    PreconditionFailed,
    RecordFormatError,
    RegistryContended,
    RequestRefused,
    ServiceError,
    SettingsInvalid,
    StoreFull,
    StoreUnavailable,
    StreamExists,
    StreamMissing,
    TooManyKeys,
    TooManyListeners,
    UnknownAlert,
    UnknownBacktest,
    UnknownConstraints,
    UnknownDeadLetter,
    UnknownDelivery,
    UnknownKey,
    UnknownPatternName,
    UnknownStream,
    UnknownTrace,
    UnknownWebhook,
    UnknownWorkflow,
    WebhookRefused,
    WorkflowFollowed,
    WorkflowInDocument,
)
from service.event_schemas import DIALECT, EventSchema
from service.inspection import PatternInspection, SetInspection, set_document
from service.intake import EventShape, Intake, IntakeReport, RejectedEvent, Unreadable, check_idempotency_key
from service.joining import Derived
from service.keyring import ANYBODY, Caller, KeyRing, is_token
from service.keys import MOST_GRACE_S, KeyDraft, KeyLibrary, KeyReport
from service.live import LiveAlerts
from service.logs import configure_logs
from service.metrics import METRICS_FORM, render_metrics
from service.overview import PipelineOverview, StreamOverview, pipeline_overview
from service.process import run_process
from service.rates import Allowance, TokenBuckets
from service.readiness import missing_parts
from service.registration import Registration
from service.reports import ConstraintReport, PatternReport
from service.runtime import Stores, build_stores, open_stores
from service.settings import Limits, RateSettings, Settings, WebhookSettings, is_loopback, load_settings
from service.sink import AlertSink
from service.traces import NextType, PatternInTrace, TraceReport, Traces
from service.tracing import open_spans
from service.webhook_library import BODY_MEMBERS, Redelivery, WebhookDraft, WebhookHealth, WebhookLibrary
from service.webhooks import Reply
from service.workflow_library import Follower, Marks, ModelUpload, WorkflowDifference, WorkflowLibrary, WorkflowReport

__all__ = [
    "ANYBODY",
    "BODY_MEMBERS",
    "DIALECT",
    "METRICS_FORM",
    "MOST_GRACE_S",
    "AlertSink",
    "Allowance",
    "Announcing",
    "Backlog",
    "BacktestDraft",
    "BacktestLibrary",
    "BatchTooLarge",
    "Caller",
    "Conflict",
    "ConstraintReport",
    "DeadLetters",
    "Derived",
    "DryRun",
    "DryRuns",
    "EmbeddedServer",
    "EmbeddedServerFailed",
    "EventSchema",
    "EventShape",
    "Follower",
    "IdempotencyKeyReused",
    "Intake",
    "IntakeReport",
    "InvalidCursor",
    "InvalidIdempotencyKey",
    "InvalidWorkflowName",
    "KeyDraft",
    "KeyLibrary",
    "KeyMismatch",
    "KeyRefused",
    "KeyReport",
    "KeyRing",
    "KeyUnusable",
    "LimitExceeded",
    "Limits",
    "LiveAlerts",
    "LogFull",
    "LogResharding",
    "Marks",
    "ModelTooLarge",
    "ModelUpload",
    "NextType",
    "NoServerBinary",
    "NotFollowing",
    "NotFound",
    "PatternChoice",
    "PatternInTrace",
    "PatternInspection",
    "PatternOnOtherStream",
    "PatternReport",
    "PatternTooLong",
    "PipelineOverview",
    "PreconditionFailed",
    "Pruning",
    "RateSettings",
    "RecordFormatError",
    "Redelivery",
    "Registration",
    "RegistryContended",
    "RejectedEvent",
    "Replayed",
    "Reply",
    "RequestRefused",
    "ServiceError",
    "SetInspection",
    "Settings",
    "SettingsInvalid",
    "StoreFull",
    "StoreUnavailable",
    "Stores",
    "StreamExists",
    "StreamMissing",
    "StreamOverview",
    "TokenBuckets",
    "TooManyKeys",
    "TooManyListeners",
    "TraceReport",
    "Traces",
    "UnknownAlert",
    "UnknownBacktest",
    "UnknownConstraints",
    "UnknownDeadLetter",
    "UnknownDelivery",
    "UnknownKey",
    "UnknownPatternName",
    "UnknownStream",
    "UnknownTrace",
    "UnknownWebhook",
    "UnknownWorkflow",
    "Unreadable",
    "Volume",
    "WebhookDraft",
    "WebhookHealth",
    "WebhookLibrary",
    "WebhookRefused",
    "WebhookSettings",
    "WorkflowDifference",
    "WorkflowFollowed",
    "WorkflowInDocument",
    "WorkflowLibrary",
    "WorkflowReport",
    "build_stores",
    "check_idempotency_key",
    "configure_logs",
    "find_server",
    "is_loopback",
    "is_token",
    "load_settings",
    "missing_parts",
    "open_spans",
    "open_stores",
    "pipeline_overview",
    "render_metrics",
    "run_process",
    "set_document",
]
