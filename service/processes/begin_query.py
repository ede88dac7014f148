"""How matching begins: in micro-batches or in continuous tasks, from where the other of the two ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import (
    BatchReport,
    ContinuousQuery,
    Heartbeat,
    JobOptions,
    LogQuery,
    Sink,
    finish_blocks,
    load_states,
    start_continuous,
    start_query,
)
from service.processes.start_report import StartReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def begin_micro_batches(
    session: SparkSession, options: JobOptions, sink: Sink, report: StartReport, beat: Heartbeat, keep: BatchReport
) -> LogQuery:
    """Write what continuous tasks have left, and start the streaming query."""
    finish_blocks(options, sink)
    report.begin("loading the states of the shards")
    load_states(session, options.held)
    report.begin("matching the events that wait")
    return start_query(session, options, sink, beat, keep)


def begin_continuous(
    session: SparkSession, options: JobOptions, sink: Sink, report: StartReport, beat: Heartbeat, keep: BatchReport
) -> ContinuousQuery:
    """Finish an interrupted micro-batch, and start the job of continuous tasks."""
    if _is_interrupted(options.checkpoint):
        report.begin("finishing the last micro-batch")
        start_query(session, replace(options, is_bounded=True), sink, report=keep).wait()
    report.begin("loading the states of the shards")
    return start_continuous(session.sparkContext, options, sink, beat, keep)


def _is_interrupted(checkpoint: Path) -> bool:
    """Whether the last micro-batch of a checkpoint began and was not committed."""
    return _newest(checkpoint / "offsets") > _newest(checkpoint / "commits")


def _newest(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("[0-9]*") if file.name.isdigit()), default=-1)
