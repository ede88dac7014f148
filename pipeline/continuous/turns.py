"""The switch between micro-batches and continuous tasks. Each begins to match where the other one ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from pipeline.continuous.indexer import IndexingSink
from pipeline.continuous.query import ContinuousQuery, finish_blocks, start_continuous
from pipeline.job import JobOptions, LogQuery, start_query
from pipeline.progress import BatchReport
from pipeline.spark.pulse import Heartbeat
from pipeline.step import load_states

_Phase = Callable[[str], None]


def begin_micro_batches(
    context: SparkContext,
    options: JobOptions,
    sink: IndexingSink,
    heartbeat: Heartbeat,
    report: BatchReport,
    phase: _Phase,
) -> LogQuery:
    """Write the blocks that continuous tasks have left, load the states, and start the query of micro-batches.

    ``phase`` is called with a description of each phase. The other arguments are those of ``pipeline.job.start_query``.
    """
    finish_blocks(options, sink)
    phase("loading the states of the shards")
    session = SparkSession(context)
    load_states(session, options.held)
    phase("matching the events that wait")
    return start_query(session, options, sink, heartbeat, report)


def begin_continuous(
    context: SparkContext,
    options: JobOptions,
    sink: IndexingSink,
    heartbeat: Heartbeat,
    report: BatchReport,
    phase: _Phase,
) -> ContinuousQuery:
    """Finish an interrupted micro-batch, and start the job of continuous tasks.

    The arguments are those of ``begin_micro_batches``. A Spark session takes seconds to create, so it is created only
    to finish a micro-batch.
    """
    if _is_interrupted(options.checkpoint):
        phase("finishing the last micro-batch")
        start_query(SparkSession(context), replace(options, is_bounded=True), sink, report=report).wait()
    phase("loading the states of the shards")
    return start_continuous(context, options, sink.index, heartbeat, report)


def _is_interrupted(checkpoint: Path) -> bool:
    return _newest(checkpoint / "offsets") > _newest(checkpoint / "commits")


def _newest(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("[0-9]*") if file.name.isdigit()), default=-1)
