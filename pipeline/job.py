"""The streaming query from the event log over the shards to the sink, with its checkpoint in the data folder.

``pipeline.step`` shows why each result is written exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.errors import QueryFailed
from pipeline.held_shards import HeldOptions
from pipeline.progress import BatchMeter, BatchReport
from pipeline.sources import EventLogOptions, EventLogSource
from pipeline.sources.options import with_options
from pipeline.spark.account import again_if_lost, summary_of
from pipeline.spark.pulse import Heartbeat, Pulse
from pipeline.spark.running_query import RunningQuery
from pipeline.step import from_table, match_shards
from shards import KINDS, Kind, OutputRow

Sink = Callable[[Sequence[OutputRow], int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Options of a streaming query.

    Attributes:
        checkpoint: Folder of offsets and commits, on the driver. It belongs to one log with one number of shards.
        handover: Folder on each machine for states that Spark's Python processes hand over. If None, the processes
        rebuild states from snapshots and the log.
        trigger_interval_s: Least time between the starts of two micro-batches. If 0, they start as soon as entries
            arrive.
        is_bounded: Whether to stop after the last entry that the log has at the start.
    """

    log: EventLogOptions
    checkpoint: Path
    handover: Path | None = None
    kinds: tuple[Kind, ...] = KINDS
    trigger_interval_s: float = 0.0
    is_bounded: bool = False

    @property
    def held(self) -> HeldOptions:
        return HeldOptions(log=self.log, handover=self.handover, kinds=self.kinds)


class LogQuery(RunningQuery[OutputRow]):
    """A running query over the event log, created by ``start_query``. Its methods raise ``QueryFailed`` if it fails."""

    def __init__(self, session: SparkSession, sink: Sink, pulse: Pulse) -> None:
        super().__init__(session, from_table, sink, pulse)

    def _fail(self, error: Exception) -> NoReturn:
        if not isinstance(error, PySparkException):
            raise QueryFailed(f"Spark's process is gone: {error}") from error
        if self.sink_error is not None:
            raise QueryFailed(f"the sink failed: {self.sink_error}") from self.sink_error
        raise QueryFailed(f"the streaming query failed: {summary_of(error)}") from error


def start_query(
    session: SparkSession,
    options: JobOptions,
    sink: Sink,
    heartbeat: Heartbeat = lambda: None,
    report: BatchReport = lambda _: None,
) -> LogQuery:
    """Start matching and return at once.

    The sink is called on the driver with the rows and the number of each micro-batch, and again with the same rows
    after a crash. It must store rows by id, and have stored all of them when it returns. The heartbeat is called after
    each micro-batch, and about once a second while no entries arrive. It is not called while the log does not answer or
    a micro-batch is running. ``report`` receives the progress of each micro-batch after its commit.

    Raise ``QueryFailed`` if the query cannot start, for example because the checkpoint belongs to another log.
    """
    meter = BatchMeter(sink, report)
    query = LogQuery(session, meter, Pulse(heartbeat, meter.committed))
    with query.failures():
        session.dataSource.register(with_options(EventLogSource, options.log))
        entries = again_if_lost(session.readStream.format(EventLogSource.name()).load)
        frame = match_shards(entries, options.held)
    query.start(frame, options.checkpoint, interval_s=options.trigger_interval_s, is_bounded=options.is_bounded)
    return query


def run_pipeline(session: SparkSession, options: JobOptions, sink: Sink, heartbeat: Heartbeat = lambda: None) -> None:
    """Match until stopped or failed (``QueryFailed``). The process should then exit with an error and be restarted."""
    start_query(session, options, sink, heartbeat).wait()
