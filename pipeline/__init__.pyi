"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .continuous.query import finish_blocks, start_continuous
from .continuous.turns import begin_continuous, begin_micro_batches
from .errors import (
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
from .held_shards import HeldOptions
from .job import JobOptions, LogQuery, Sink, run_pipeline, start_query
from .loading import load_states
from .progress import BatchProgress, BatchReport
from .resharding import divide_states, forget_states
from .runs.backtest import BacktestResult, run_backtest
from .runs.history import History, history_files
from .runs.in_process import InProcess, is_small
from .runs.in_spark import InSpark
from .runs.tasks import BacktestOptions
from .snapshots import missing_snapshots
from .sources import EventLogOptions, log_ends
from .spark.cluster import ClusterOptions, ExecutorWatch, await_machines, is_local, require_master
from .spark.java import check_java
from .spark.pulse import Heartbeat
from .spark.running_query import RunningQuery
from .spark.session import (
    SessionOptions,
    build_context,
    build_session,
    end_session,
    end_with_process,
    prepared_daemon,
)
from .spark.worker_check import workers_answer
from .warmup import compiling_beside, warm_up

__all__ = [
    "BacktestFailed",
    "BacktestOptions",
    "BacktestResult",
    "BatchProgress",
    "BatchReport",
    "ClusterOptions",
    "ClusterUnready",
    "EventLogOptions",
    "ExecutorWatch",
    "FeedDamaged",
    "FeedFolderMissing",
    "Heartbeat",
    "HeldOptions",
    "History",
    "InProcess",
    "InSpark",
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
    "begin_continuous",
    "begin_micro_batches",
    "build_context",
    "build_session",
    "check_java",
    "compiling_beside",
    "divide_states",
    "end_session",
    "end_with_process",
    "finish_blocks",
    "forget_states",
    "history_files",
    "is_local",
    "is_small",
    "load_states",
    "log_ends",
    "missing_snapshots",
    "prepared_daemon",
    "require_master",
    "run_backtest",
    "run_pipeline",
    "start_continuous",
    "start_query",
    "warm_up",
    "workers_answer",
]
