"""How the pipeline begins: as micro-batches or as continuous tasks, where the other of the two ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import (
    POSITIONS_KEY,
    BatchReport,
    ContinuousQuery,
    JobOptions,
    LogQuery,
    Sink,
    finish_blocks,
    load_states,
    start_continuous,
    start_query,
    take_over,
)
from service.processes.start_report import StartReport
from service.stores.log.backlog import MATCHED_KEY
from streams import SystemClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def begin_query(
    session: SparkSession, options: JobOptions, sink: Sink, report: StartReport, keep: BatchReport
) -> LogQuery | ContinuousQuery:
    """Start the query of the runtime that the options name."""
    clock = SystemClock()

    def beat() -> None:
        report.beat(clock.now_us())

    if options.log.results != POSITIONS_KEY:
        finish_blocks(options, sink)
        report.begin("loading the states of the shards")
        load_states(session, options.held)
        report.begin("matching the events that wait")
        return start_query(session, options, sink, beat, keep)
    if _is_interrupted(options.checkpoint):
        report.begin("finishing the last micro-batch")
        bounded = replace(options, log=replace(options.log, results=MATCHED_KEY), is_bounded=True)
        start_query(session, bounded, sink, report=keep).wait()
    take_over(options, MATCHED_KEY)
    report.begin("loading the states of the shards")
    return start_continuous(session.sparkContext, options, sink, beat, keep)


def _is_interrupted(checkpoint: Path) -> bool:
    """Whether the last micro-batch of a checkpoint began and was not committed."""
    return _newest(checkpoint / "offsets") > _newest(checkpoint / "commits")


def _newest(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("[0-9]*") if file.name.isdigit()), default=-1)
