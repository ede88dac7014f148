"""The running service, without its HTTP face.

Purpose: settings, the private Redis server, the stores, what users register, the way of events into the log, the sink
of the rows, and the delivery of alerts. Promises: what was answered is in Redis, a control record and the
registry change together or not at all, every write of the pipeline may be repeated without harm, and an alert is
delivered at least once to every webhook that wanted it when it was found. Nothing here knows FastAPI.
"""

from service.announcing import Announcing
from service.backlog import Backlog, Volume
from service.backtests import BacktestDraft, BacktestLibrary, PatternChoice, Pruning
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
    UnknownAlert,
    UnknownBacktest,
    UnknownConstraints,
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
from service.inspection import PatternInspection, SetInspection, set_document
from service.intake import EventShape, Intake, IntakeReport, RejectedEvent
from service.joining import Derived
from service.keyring import ANYBODY, Caller, KeyRing, is_token
from service.keys import MOST_GRACE_S, KeyDraft, KeyLibrary, KeyReport
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
from service.workflow_library import Follower, Marks, ModelUpload, WorkflowDifference, WorkflowLibrary, WorkflowReport

__all__ = [
    "ANYBODY",
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
    "Derived",
    "EmbeddedServer",
    "EmbeddedServerFailed",
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
    "LogFull",
    "LogResharding",
    "Marks",
    "ModelTooLarge",
    "ModelUpload",
    "NoServerBinary",
    "NotFollowing",
    "NotFound",
    "PatternChoice",
    "PatternInspection",
    "PatternOnOtherStream",
    "PatternReport",
    "PatternTooLong",
    "PipelineOverview",
    "Pruning",
    "RateSettings",
    "RecordFormatError",
    "Registration",
    "RegistryContended",
    "RejectedEvent",
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
    "UnknownAlert",
    "UnknownBacktest",
    "UnknownConstraints",
    "UnknownKey",
    "UnknownPatternName",
    "UnknownStream",
    "UnknownTrace",
    "UnknownWebhook",
    "UnknownWorkflow",
    "Volume",
    "WebhookRefused",
    "WebhookSettings",
    "WorkflowDifference",
    "WorkflowFollowed",
    "WorkflowInDocument",
    "WorkflowLibrary",
    "WorkflowReport",
    "build_stores",
    "configure_logs",
    "find_server",
    "is_loopback",
    "is_token",
    "load_settings",
    "missing_parts",
    "open_stores",
    "pipeline_overview",
    "render_metrics",
    "run_process",
    "set_document",
]
