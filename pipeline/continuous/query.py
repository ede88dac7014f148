"""The job of long-running tasks, which the driver starts, watches and ends."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import cast

import redis
import structlog
from py4j.protocol import Py4JError
from pyspark import SparkContext

from pipeline.continuous.blocks import begin_at, positions
from pipeline.continuous.indexer import Indexer, IndexingSink, is_passing
from pipeline.continuous.keys import FAILURE_KEY, RANGE_KEY, blocks_key
from pipeline.continuous.leases import (
    CONNECTED_S,
    are_all_owned,
    await_end,
    begin_job,
    end_job,
    fence,
    has_begun,
    remove_unconnected,
)
from pipeline.continuous.task import SWITCHED_S, TaskOptions, run_tasks
from pipeline.errors import QueryFailed
from pipeline.folders import remove_folder
from pipeline.job import JobOptions, Sink
from pipeline.progress import BatchReport
from pipeline.sources.log_reader import EventLogReader, log_ends
from pipeline.sources.log_reading import POSITIONS_KEY, beginnings, connect, unreachable, written_up_to
from pipeline.spark.pulse import Heartbeat
from pipeline.spark.workers import matcher_workers
from streams import NOTED_KEY, ForestallError, position_order

_LOOKED_S = 0.2
_BEAT_S = 1.0
_BEGUN_S = 600.0  # longest wait for the first task
_LONGEST_STEP_S = 300.0  # a shard is stalled if it has unread entries and made no step for this time
_STALLS_S = 10.0  # time between two checks for stalled shards
_ENDING_S = 10.0

log = structlog.get_logger(__name__)


class ContinuousQuery:
    """The running Spark job of continuous tasks, created by ``start_continuous``, with the indexer of its results.

    The methods raise ``QueryFailed`` if the job fails.
    """

    def __init__(self, context: SparkContext, options: JobOptions, indexer: Indexer, heartbeat: Heartbeat) -> None:
        self._context = context
        self._options = options
        self._indexer = indexer
        self._heartbeat = heartbeat
        self._server = connect(options.log)
        self._job = uuid.uuid4().hex
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="continuous-job", daemon=True)
        self._progress = _Progress(self._server, options)
        self._beaten = 0.0
        self._begun = time.monotonic()
        self._is_ready = False  # whether all states have been loaded
        self._is_stop_requested = False

    def start(self) -> None:
        """Start the job and the indexer. Call this method once."""
        self._server.delete(FAILURE_KEY)
        begin_job(self._server, self._job)
        self._indexer.start()
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    def wait(self, timeout_s: float | None = None, look: Callable[[], None] = lambda: None) -> bool:
        """Watch the job until ``request_stop`` ends it.

        Return False if ``timeout_s`` have passed before (None: no limit).

        ``look`` is called regularly.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while deadline is None or time.monotonic() < deadline:
            if self._is_stop_requested:
                self.stop()
                return True
            try:
                self._look()
            except (redis.ConnectionError, redis.TimeoutError) as error:
                raise unreachable(error) from error
            except ForestallError as error:  # from the heartbeat
                if not is_passing(error):
                    raise
                log.warning("heartbeat-not-stored", error=error.message)
            look()
            time.sleep(_LOOKED_S)
        return False

    def request_stop(self) -> None:
        """Have ``wait`` stop the job and return. Signal handlers may call only this method."""
        self._is_stop_requested = True

    def drain(self) -> None:
        """Wait until all entries that the log has now have reached the sink. The errors are those of ``wait``."""
        ends = {int(shard): position_order(end) for shard, end in log_ends(self._options.log).items()}
        while any(position_order(self._indexer.afters[shard]) < end for shard, end in ends.items()):
            self.wait(timeout_s=0.01)

    def stop(self) -> None:
        """Stop the job after the tasks have finished their steps and the indexer has written all blocks."""
        end_job(self._server, self._job)
        await_end(self._server, _ENDING_S)
        with suppress(OSError, Py4JError):  # Spark's process may have ended
            self._context.cancelAllJobs()  # also ends tasks that wait for a core
        self._thread.join(_ENDING_S)
        self._indexer.stop()
        if self._indexer.error is not None:
            log.warning("blocks-left", error=str(self._indexer.error))  # the next start writes them

    def _look(self) -> None:
        if self._indexer.error is not None:
            raise QueryFailed(f"the sink failed: {self._indexer.error}") from self._indexer.error
        if self._failure is None and self._thread.is_alive():
            for member in remove_unconnected(self._server, CONNECTED_S):
                log.warning("task-gone", member=member)
            if time.monotonic() < self._beaten + _BEAT_S:
                return
        self._beaten = time.monotonic()
        reason = cast("bytes | None", self._server.hget(FAILURE_KEY, self._job))
        if reason is not None or self._failure is not None:
            end_job(self._server, self._job)
            raise QueryFailed(
                f"the job of continuous tasks failed: {self._failure if reason is None else reason.decode()}"
            )
        if not self._thread.is_alive():
            raise QueryFailed("the job of continuous tasks ended by itself")
        self._beat()

    def _beat(self) -> None:
        """Send a heartbeat if all shards have living owners. The first heartbeat also requires loaded states.

        Later heartbeats do not require them, because a step or the loading of a state may take minutes.
        """
        is_owned = are_all_owned(self._server, self._options.log.shards, are_loaded=not self._is_ready)
        if is_owned and not self._progress.is_stalled():
            self._is_ready = True
            self._heartbeat()
        if not self._is_ready and time.monotonic() > self._begun + _BEGUN_S and not has_begun(self._server):
            raise QueryFailed(
                f"no continuous task has begun within {_BEGUN_S:.0f} s: Spark's Python processes do not start, or its "
                "cluster has no free core"
            )

    def _run(self) -> None:
        shards = self._options.log.shards
        options = TaskOptions(held=self._options.held, job=self._job)
        try:
            with matcher_workers(self._context, are_tasks=True):
                self._context.parallelize(range(shards), shards).mapPartitionsWithIndex(run_tasks(options)).collect()
        # house: allow broad-except: whatever it is, the thread that waits raises it
        except Exception as error:
            self._failure = str(error)


class _Progress:
    """Notices if a shard is stalled: its log has unread entries, but its position does not advance."""

    def __init__(self, server: redis.Redis, options: JobOptions) -> None:
        self._server = server
        self._options = options
        self._moved: dict[int, tuple[str, float]] = {}
        self._looked = -_STALLS_S
        self._is_stalled = False

    def is_stalled(self) -> bool:
        if time.monotonic() > self._looked + _STALLS_S:
            self._looked = time.monotonic()
            self._is_stalled = self._has_stalled_shard()
        return self._is_stalled

    def _has_stalled_shard(self) -> bool:
        now, ends = time.monotonic(), log_ends(self._options.log)
        is_stalled = False
        for shard, at in enumerate(positions(self._server, self._options.log.shards)):
            position, since = self._moved.get(shard, ("", now))
            if position != at or position_order(ends[str(shard)]) <= position_order(at):
                since = now
            self._moved[shard] = at, since
            is_stalled |= now > since + _LONGEST_STEP_S
        return is_stalled


def start_continuous(
    context: SparkContext,
    options: JobOptions,
    sink: Sink,
    heartbeat: Heartbeat = lambda: None,
    report: BatchReport = lambda _: None,
) -> ContinuousQuery:
    """Start matching in long-running tasks, and return at once.

    The sink is called on the driver with rows of blocks, as in ``pipeline.job.start_query``. Raise ``LogDamaged`` if
    the log ends before the results do, or lacks entries that no snapshot covers.
    """
    sys.setswitchinterval(SWITCHED_S)  # the indexer waits for other threads
    options = take_over(options)
    query = ContinuousQuery(context, options, Indexer(options.log, sink, report), heartbeat)
    query.start()
    return query


def take_over(options: JobOptions) -> JobOptions:
    """Let continuous tasks start where micro-batches or a resharding ended, and remove the checkpoint of micro-batches.

    Return the options for continuous tasks. Under these options, results count as written once they are in blocks.
    """
    server = connect(options.log)
    fence(server, options.log.shards)
    starts = {
        shard: max(start, written_up_to(server, options.log, shard), key=position_order)
        for shard, start in beginnings(server, options.log).items()
    }
    begin_at(server, starts)
    stepped = replace(options, log=replace(options.log, results=POSITIONS_KEY))
    reader = EventLogReader(stepped.log)
    try:
        reader.check({str(shard): at for shard, at in enumerate(positions(server, options.log.shards))})
    finally:
        reader.stop()
    with suppress(OSError):
        remove_folder(options.checkpoint)
    return stepped


def finish_blocks(options: JobOptions, sink: IndexingSink) -> None:
    """Pass the blocks that continuous tasks have left to the sink. Call this before micro-batches begin."""
    server = connect(options.log)
    fence(server, options.log.shards)
    indexer = Indexer(options.log, sink.index, lambda _: None)
    indexer.recover()
    while indexer.write_next(wait_ms=1):
        pass
    server.delete(RANGE_KEY, NOTED_KEY, *map(blocks_key, range(options.log.shards)))
