"""Exports of the package; `__init__.py` loads each name on first use."""

from .continuous.query import finish_blocks as finish_blocks, start_continuous as start_continuous
from .continuous.turns import begin_continuous as begin_continuous, begin_micro_batches as begin_micro_batches
from .errors import (
    ClusterUnready as ClusterUnready,
    FeedFolderMissing as FeedFolderMissing,
    JavaMissing as JavaMissing,
    LogDamaged as LogDamaged,
    QueryFailed as QueryFailed,
    SourceOptionError as SourceOptionError,
)
from .folders import remove_folder as remove_folder
from .held_shards import HeldOptions as HeldOptions
from .job import (
    JobOptions as JobOptions,
    LogQuery as LogQuery,
    Sink as Sink,
    run_pipeline as run_pipeline,
    start_query as start_query,
)
from .progress import BatchProgress as BatchProgress
from .resharding import divide_states as divide_states, forget_states as forget_states
from .runs.backtest import BacktestResult as BacktestResult, run_backtest as run_backtest
from .runs.history import History as History, history_files as history_files, read_history as read_history
from .runs.in_process import InProcess as InProcess, is_small as is_small
from .runs.in_spark import InSpark as InSpark
from .runs.tasks import BacktestOptions as BacktestOptions
from .snapshots import missing_snapshots as missing_snapshots
from .sources import EventLogOptions as EventLogOptions, log_ends as log_ends
from .spark.cluster import (
    ClusterOptions as ClusterOptions,
    ExecutorWatch as ExecutorWatch,
    await_machines as await_machines,
    is_local as is_local,
    require_master as require_master,
)
from .spark.java import check_java as check_java
from .spark.session import (
    SessionOptions as SessionOptions,
    build_context as build_context,
    build_session as build_session,
    end_session as end_session,
    end_with_process as end_with_process,
    prepared_daemon as prepared_daemon,
)
from .spark.worker_check import workers_answer as workers_answer
from .warmup import compiling_beside as compiling_beside, warm_up as warm_up
