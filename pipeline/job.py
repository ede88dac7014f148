"""The streaming query: event log -> shards -> sink, with its checkpoint in the data folder.

Exactly-once is argued in ``pipeline.step``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import QueryFailed
from pipeline.held_shards import HeldOptions
from pipeline.progress import BatchMeter, BatchReport
from pipeline.pulse import Heartbeat, Pulse
from pipeline.rows import OutputRow
from pipeline.sources import EventLogOptions, EventLogSource
from pipeline.step import from_table, ignore_shards, match_shards

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Sink = Callable[[Sequence[OutputRow], int], None]

# Slept in Python, not in a call to the JVM: a signal that interrupts such a call leaves its answer to the next one.
_POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What a streaming query needs.

    Attributes:
        log: The input.
        checkpoint: Folder of offsets and commits, on the driver; belongs to one log with one number of shards.
        handover: Folder on each machine for states on their way between Spark's Python processes; None: they rebuild
            them from snapshots and the log.
        trigger_interval_s: Least time between the starts of two micro-batches; 0 begins the next as soon as there is
            news.
        is_bounded: Stop after what the log holds at the start.
    """

    log: EventLogOptions
    checkpoint: Path
    handover: Path | None = None
    trigger_interval_s: float = 0.0
    is_bounded: bool = False


class RunningQuery:
    """A started query.

    Attributes:
        sink_error: What the sink raised, if that ended the query.
    """

    def __init__(self, session: SparkSession, pulse: Pulse) -> None:
        self._session = session
        self._pulse = pulse
        self._query: StreamingQuery | None = None
        self._is_stop_requested = False
        self.sink_error: Exception | None = None

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        try:
            return self._query is not None and self._query.isActive
        except (Py4JError, OSError):
            return False

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, by itself or by ``request_stop``; whether it came within the time.

        Raises:
            QueryFailed: The query ended by an error, or Spark's process is gone.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while deadline is None or time.monotonic() < deadline:
            if self._is_stop_requested:
                self.stop()
                return True
            with self._failures():
                if not self._started().isActive:
                    self._unlisten()
                    self._started().awaitTermination()
                    return True
            time.sleep(_POLL_S)
        return False

    def request_stop(self) -> None:
        """Let ``wait`` stop the query and return; the one thing that a signal handler may safely do."""
        self._is_stop_requested = True

    def drain(self) -> None:
        """Wait until everything that was in the log at the call has reached the sink.

        Raises:
            QueryFailed: The query ended by an error, or Spark's process is gone.
        """
        with self._failures():
            self._started().processAllAvailable()

    def stop(self) -> None:
        """Stop, if need be within a micro-batch; what was not committed is done again by the next query.

        Raises:
            QueryFailed: Spark's process is gone.
        """
        with self._failures():
            self._started().stop()
            self._unlisten()

    def start(self, frame: DataFrame, options: JobOptions, sink: Sink) -> None:
        """Begin; called once, by ``start_query``."""

        def store(batch: DataFrame, epoch_id: int) -> None:
            rows = from_table(batch.toArrow())
            try:
                sink(rows, epoch_id)
            # house: allow broad-except: whatever it is, it is remembered and raised again
            except Exception as error:
                self.sink_error = error
                raise

        trigger = {"availableNow": True} if options.is_bounded else {"processingTime": _interval(options)}
        self._session.streams.addListener(self._pulse)
        writer = frame.writeStream.outputMode("append").option("checkpointLocation", str(options.checkpoint))
        with self._failures():
            self._query = writer.trigger(**trigger).foreachBatch(store).start()

    def _started(self) -> StreamingQuery:
        if self._query is None:
            raise RuntimeError("the query was not started")
        return self._query

    def _unlisten(self) -> None:
        self._session.streams.removeListener(self._pulse)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what Spark raises into ``QueryFailed``, with the sink's error as the cause where there is one."""
        try:
            yield
        except PySparkException as error:
            if self.sink_error is not None:
                raise QueryFailed(f"the sink failed: {self.sink_error}") from self.sink_error
            raise QueryFailed(f"the streaming query failed: {_summary(error)}") from error
        except (Py4JError, OSError) as error:
            raise QueryFailed(f"Spark's process is gone: {error}") from error


def start_query(
    session: SparkSession,
    options: JobOptions,
    sink: Sink,
    heartbeat: Heartbeat = lambda: None,
    report: BatchReport = lambda _: None,
) -> RunningQuery:
    """Start matching; returns at once.

    Args:
        session: From ``build_session``.
        options: Input, checkpoint, pace.
        sink: Called on the driver, once per micro-batch and again with the same rows after a crash, with the rows and
            the micro-batch's number; must store rows by id, and everything before it returns.
        heartbeat: Called after each micro-batch and about once a second while there is no news; not while the log does
            not answer or a micro-batch is under way.
        report: Told how each micro-batch went, once it is committed.

    Raises:
        QueryFailed: The query cannot start, for instance as the checkpoint belongs to another log.
    """
    return _start(session, options, match_shards, BatchMeter(sink, report), heartbeat)


def run_pipeline(session: SparkSession, options: JobOptions, sink: Sink, heartbeat: Heartbeat = lambda: None) -> None:
    """Match until the query is stopped or fails; see ``start_query``.

    Raises:
        QueryFailed: It failed. The caller's process should end with an error and be started again.
    """
    start_query(session, options, sink, heartbeat).wait()


def start_empty(
    session: SparkSession, options: JobOptions, sink: Sink, heartbeat: Heartbeat = lambda: None
) -> RunningQuery:
    """The same plan with an operator that looks at nothing: what Spark itself costs. Its checkpoint is its own."""
    return _start(session, options, ignore_shards, BatchMeter(sink, lambda _: None), heartbeat)


def _start(
    session: SparkSession,
    options: JobOptions,
    step: Callable[[DataFrame, HeldOptions], DataFrame],
    meter: BatchMeter,
    heartbeat: Heartbeat,
) -> RunningQuery:
    session.dataSource.register(EventLogSource)
    entries = session.readStream.format(EventLogSource.name()).options(**options.log.to_mapping()).load()
    query = RunningQuery(session, Pulse(heartbeat, meter.committed))
    held = HeldOptions(log=options.log, handover=options.handover)
    query.start(step(entries, held), options, meter)
    return query


def _interval(options: JobOptions) -> str:
    return f"{round(options.trigger_interval_s * 1_000)} milliseconds"


def _summary(error: PySparkException) -> str:
    """What happened, without the stacks: the last line of Spark's account that is not indented."""
    told = str(error).split("JVM stacktrace:")[0].split("=== Streaming Query ===")[0]
    lines = [line for line in told.splitlines() if line.strip() and not line[0].isspace()]
    return lines[-1] if lines else type(error).__name__
