"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .access.keyring import ANYBODY as ANYBODY, Caller as Caller, KeyRing as KeyRing, is_token as is_token
from .access.keys import (
    KeyDraft as KeyDraft,
    KeyLibrary as KeyLibrary,
    KeyReport as KeyReport,
    MOST_GRACE_S as MOST_GRACE_S,
)
from .backtests import (
    BacktestDraft as BacktestDraft,
    BacktestLibrary as BacktestLibrary,
    PatternChoice as PatternChoice,
    Pruning as Pruning,
)
from .delivery.attempts import Reply as Reply
from .delivery.library import (
    WebhookDraft as WebhookDraft,
    WebhookHealth as WebhookHealth,
    WebhookLibrary as WebhookLibrary,
)
from .delivery.live import Gap as Gap, LiveLists as LiveLists
from .delivery.results_feed import ResultsFeed as ResultsFeed
from .delivery.sink import AlertSink as AlertSink
from .embedded import find_server as find_server
from .errors import (
    AnswersLate as AnswersLate,
    PipelineAway as PipelineAway,
    TooManyQuestions as TooManyQuestions,
    BatchTooLarge as BatchTooLarge,
    Conflict as Conflict,
    IdempotencyKeyReused as IdempotencyKeyReused,
    InvalidCursor as InvalidCursor,
    LimitExceeded as LimitExceeded,
    LogFull as LogFull,
    LogResharding as LogResharding,
    NotFound as NotFound,
    PatternOnOtherStream as PatternOnOtherStream,
    PreconditionFailed as PreconditionFailed,
    RecordFormatError as RecordFormatError,
    RegistryContended as RegistryContended,
    RequestRefused as RequestRefused,
    SettingsInvalid as SettingsInvalid,
    StoreFull as StoreFull,
    StoreUnavailable as StoreUnavailable,
    TooManyListeners as TooManyListeners,
    UnknownAlert as UnknownAlert,
    UnknownBacktest as UnknownBacktest,
    UnknownDeadLetter as UnknownDeadLetter,
    UnknownIncident as UnknownIncident,
    UnknownOperator as UnknownOperator,
    UnknownPatternName as UnknownPatternName,
    UnknownSink as UnknownSink,
    UnknownWebhook as UnknownWebhook,
)
from .intake.announcing import Announcing as Announcing
from .intake.event_schemas import EventSchema as EventSchema, unknown_words as unknown_words
from .intake.posting import (
    EventShape as EventShape,
    Intake as Intake,
    IntakeReport as IntakeReport,
    Unreadable as Unreadable,
    check_idempotency_key as check_idempotency_key,
)
from .intake.rates import Allowance as Allowance, TokenBuckets as TokenBuckets
from .intake.resending import DeadLetters as DeadLetters, Replayed as Replayed
from .observing.http_times import HttpTimes as HttpTimes
from .observing.logs import configure_logs as configure_logs
from .observing.measured_lateness import MeasuredLateness as MeasuredLateness
from .observing.metrics import METRICS_FORM as METRICS_FORM, render_metrics as render_metrics
from .observing.overview import (
    PatternCounts as PatternCounts,
    PipelineOverview as PipelineOverview,
    SkippedBacklog as SkippedBacklog,
    StreamOverview as StreamOverview,
    missing_parts as missing_parts,
    pattern_counts as pattern_counts,
    pipeline_overview as pipeline_overview,
    skipped_by as skipped_by,
)
from .observing.plan import pipeline_plan as pipeline_plan
from .observing.plots import plot_operator as plot_operator
from .observing.stream_usage import StreamUsage as StreamUsage, stream_usage as stream_usage
from .observing.tracing import open_spans as open_spans
from .process import run_process as run_process
from .processes.supervisor import CHILDREN as CHILDREN, CONSOLE as CONSOLE
from .projects.documents import document_schema as document_schema
from .questions.asking import Questions as Questions
from .questions.open_cases import (
    CaseFilter as CaseFilter,
    OpenCaseLibrary as OpenCaseLibrary,
    OpenCaseReport as OpenCaseReport,
)
from .questions.operators import OperatorAnswer as OperatorAnswer, OperatorQuestions as OperatorQuestions
from .registering.incidents import IncidentLibrary as IncidentLibrary
from .registering.inspection import (
    PatternInspection as PatternInspection,
    SetInspection as SetInspection,
    set_document as set_document,
)
from .registering.joining import Derived as Derived
from .registering.operators import OperatorLibrary as OperatorLibrary
from .registering.registration import Registration as Registration
from .registering.reports import ConstraintReport as ConstraintReport, PatternReport as PatternReport
from .registering.tables import (
    CalendarLibrary as CalendarLibrary,
    CalendarReport as CalendarReport,
    TableLibrary as TableLibrary,
    TableReport as TableReport,
    TableUpload as TableUpload,
)
from .registering.workflow_library import (
    Follower as Follower,
    Marks as Marks,
    ModelUpload as ModelUpload,
    WorkflowDifference as WorkflowDifference,
    WorkflowLibrary as WorkflowLibrary,
    WorkflowReport as WorkflowReport,
)
from .runs.followed_model import follow_model as follow_model
from .runs.past_log import PastLog as PastLog
from .runs.run_rules import RunRules as RunRules
from .runs.stream_report import StreamReport as StreamReport, WorkflowUse as WorkflowUse
from .runs.stream_run import StreamRun as StreamRun, exercises_of as exercises_of
from .runtime import Stores as Stores, open_stores as open_stores
from .settings import (
    Limits as Limits,
    Settings as Settings,
    TracingSettings as TracingSettings,
    WebhookSettings as WebhookSettings,
    WorkSettings as WorkSettings,
    is_loopback as is_loopback,
    load_settings as load_settings,
)
from .stores import (
    Acknowledgement as Acknowledgement,
    Action as Action,
    AlertFilter as AlertFilter,
    Answer as Answer,
    ApiKey as ApiKey,
    IdempotentRequest as IdempotentRequest,
    Attempt as Attempt,
    AuditEntry as AuditEntry,
    Backtest as Backtest,
    BacktestStatus as BacktestStatus,
    Condition as Condition,
    DIGEST as DIGEST,
    Decision as Decision,
    EventFilter as EventFilter,
    EventType as EventType,
    HourCount as HourCount,
    Note as Note,
    OperatorDraft as OperatorDraft,
    Order as Order,
    Page as Page,
    ProjectRecord as ProjectRecord,
    Record as Record,
    RegisteredConstraints as RegisteredConstraints,
    RegisteredOperator as RegisteredOperator,
    RegisteredPattern as RegisteredPattern,
    RegisteredTable as RegisteredTable,
    RegisteredWebhook as RegisteredWebhook,
    RegisteredWorkflow as RegisteredWorkflow,
    ReplayOutcome as ReplayOutcome,
    Scope as Scope,
    Severity as Severity,
    StreamRecord as StreamRecord,
    StreamUse as StreamUse,
    USUAL_SEVERITY as USUAL_SEVERITY,
    pattern_draft as pattern_draft,
    tag_of as tag_of,
)
from .trials.dry_runs import DryRuns as DryRuns
from .trials.traces import Traces as Traces
