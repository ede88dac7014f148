"""The Spark job: from the event log to alerts, exactly once.

Purpose: the event log as a Spark source, the state of a shard as a function of its entries, the streaming query around
it, and the same without Spark. Promises: every row has an id that depends on what it says only; after a crash at any
point the rows are the same; a bad entry becomes a dead letter and never stops a shard. Nothing here knows who writes
the log or who keeps the rows.
"""

from pipeline.backtest import BacktestOptions, BacktestResult, run_backtest
from pipeline.cluster import ClusterOptions, await_machines, is_local
from pipeline.entries import Entry, StoredEntry
from pipeline.errors import (
    BacktestFailed,
    ClusterUnready,
    FeedDamaged,
    FeedFolderMissing,
    JavaMissing,
    KafkaClientMissing,
    KafkaGap,
    KafkaUnreachable,
    LogDamaged,
    LogUnreachable,
    PipelineError,
    QueryFailed,
    SavedStateError,
    SourceOptionError,
)
from pipeline.held_shards import HeldOptions
from pipeline.history import History, history_files
from pipeline.inline import run_inline
from pipeline.java import check_java
from pipeline.job import JobOptions, LogQuery, Sink, run_pipeline, start_empty, start_query
from pipeline.progress import BatchProgress, BatchReport
from pipeline.pulse import Heartbeat
from pipeline.resharding import divide_states, forget_states
from pipeline.rows import OutputRow, RowKind, alert_id
from pipeline.running_query import RunningQuery
from pipeline.session import SessionOptions, build_context, build_session, end_session, end_with_process
from pipeline.shard import ShardState
from pipeline.sources import EventLogOptions
from pipeline.trial import ComparisonCounts, Likeness, TrialPlan, Variant, VariantCounts
from pipeline.warmup import PIPELINE_EXERCISES, compiling_beside, trial_exercises, warm_up
from pipeline.worker_check import workers_answer

__all__ = [
    "PIPELINE_EXERCISES",
    "BacktestFailed",
    "BacktestOptions",
    "BacktestResult",
    "BatchProgress",
    "BatchReport",
    "ClusterOptions",
    "ClusterUnready",
    "ComparisonCounts",
    "Entry",
    "EventLogOptions",
    "FeedDamaged",
    "FeedFolderMissing",
    "Heartbeat",
    "HeldOptions",
    "History",
    "JavaMissing",
    "JobOptions",
    "KafkaClientMissing",
    "KafkaGap",
    "KafkaUnreachable",
    "Likeness",
    "LogDamaged",
    "LogQuery",
    "LogUnreachable",
    "OutputRow",
    "PipelineError",
    "QueryFailed",
    "RowKind",
    "RunningQuery",
    "SavedStateError",
    "SessionOptions",
    "ShardState",
    "Sink",
    "SourceOptionError",
    "StoredEntry",
    "TrialPlan",
    "Variant",
    "VariantCounts",
    "alert_id",
    "await_machines",
    "build_context",
    "build_session",
    "check_java",
    "compiling_beside",
    "divide_states",
    "end_session",
    "end_with_process",
    "forget_states",
    "history_files",
    "is_local",
    "run_backtest",
    "run_inline",
    "run_pipeline",
    "start_empty",
    "start_query",
    "trial_exercises",
    "warm_up",
    "workers_answer",
]
