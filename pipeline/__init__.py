"""The Spark job: from the event log to alerts, exactly once.

Purpose: the event log as a Spark source, the streaming query that advances the states of shards, and where those are
kept. Promises: after a crash at any point the rows are the same. What an entry means is said by ``shards``. Nothing
here knows who writes the log or who keeps the rows.
"""

from pipeline.backtest import BacktestOptions, BacktestResult, run_backtest
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
    SourceOptionError,
)
from pipeline.held_shards import HeldOptions
from pipeline.history import History, history_files
from pipeline.job import JobOptions, LogQuery, Sink, run_pipeline, start_empty, start_query
from pipeline.progress import BatchProgress, BatchReport
from pipeline.resharding import divide_states, forget_states
from pipeline.sources import EventLogOptions, log_ends
from pipeline.spark.cluster import ClusterOptions, await_machines, is_local
from pipeline.spark.java import check_java
from pipeline.spark.pulse import Heartbeat
from pipeline.spark.running_query import RunningQuery
from pipeline.spark.session import SessionOptions, build_context, build_session, end_session, end_with_process
from pipeline.spark.worker_check import workers_answer
from pipeline.warmup import PIPELINE_EXERCISES, compiling_beside, warm_up

__all__ = [
    "PIPELINE_EXERCISES",
    "BacktestFailed",
    "BacktestOptions",
    "BacktestResult",
    "BatchProgress",
    "BatchReport",
    "ClusterOptions",
    "ClusterUnready",
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
    "LogDamaged",
    "LogQuery",
    "LogUnreachable",
    "PipelineError",
    "QueryFailed",
    "RunningQuery",
    "SessionOptions",
    "Sink",
    "SourceOptionError",
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
    "log_ends",
    "run_backtest",
    "run_pipeline",
    "start_empty",
    "start_query",
    "warm_up",
    "workers_answer",
]
