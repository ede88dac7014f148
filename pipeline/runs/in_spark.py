"""The executor of a backtest in Spark, which runs the tasks of a round on all cores of a machine or a cluster.

Only the task that reads a file ever holds the whole file in memory, and the output of earlier rounds stays on disk. The
job uses plain RDDs, not frames, because the planner of frames takes longer to start than matching a small history.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as StillRunning
from functools import partial
from operator import itemgetter
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.errors import PySparkException

from pipeline.errors import BacktestFailed
from pipeline.runs.deciding import decided
from pipeline.runs.history import History, parts_of
from pipeline.runs.tasks import HANDED_ON, READING_SHARE, Progress, Reported, RoundTask
from pipeline.spark.account import summary_of
from pipeline.spark.workers import matcher_workers
from shards import DeciderState, Decision, Variant

_POLL_S = 0.1
_PARTS_PER_CORE = 2

_Answer = TypeVar("_Answer")


class InSpark:
    """Runs the tasks of a backtest in Spark."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._outputs: dict[int, RDD[Reported]] = {}  # by number of the round

    def decisions(
        self, histories: Mapping[str, History], observing: Sequence[tuple[int, Variant]], progress: Progress
    ) -> Sequence[Decision | DeciderState]:
        """Return the decisions of variants, and the states of their deciders, one Spark task for each variant."""
        tasks = self._context.parallelize(observing, len(observing)).flatMap(partial(decided, histories))
        return _SparkWork(self._context, progress).run(tasks.collect)

    def run(self, task: RoundTask, progress: Progress) -> Iterable[Reported]:
        """Run a round as a Spark job, and return the reports of its tasks. The same round may be run again."""
        parts = parts_of(task.histories, _PARTS_PER_CORE * self._context.defaultParallelism)
        tasks = 1 if task.reads_lines else max(len(parts), 1)
        dealt = [self._context.parallelize(parts, tasks).mapPartitions(task.reader())]
        dealt += [output.flatMap(task.handed_to) for number, output in self._outputs.items() if number < task.number]
        in_shards = self._context.union(dealt).repartitionAndSortWithinPartitions(task.options.shards, itemgetter(0))
        reported = in_shards.mapPartitions(task.matched)
        if not task.is_last:
            if task.number in self._outputs:
                self._outputs.pop(task.number).unpersist()
            self._outputs[task.number] = reported.persist(StorageLevel.DISK_ONLY)
            reported = reported.filter(_stays)
        return _SparkWork(self._context, progress).run(reported.collect)

    def close(self) -> None:
        """Forget the output of earlier rounds."""
        for output in self._outputs.values():
            output.unpersist()


def _stays(reported: Reported) -> bool:
    return reported[0] != HANDED_ON


class _SparkWork:
    """Runs a Spark job in another thread, so that the calling thread can report progress and be interrupted."""

    def __init__(self, context: SparkContext, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        self._share_done = 0.0

    def run(self, action: Callable[[], _Answer]) -> _Answer:
        group = f"backtest-{uuid.uuid4().hex}"

        def work() -> _Answer:
            self._context.setJobGroup(group, "backtest", interruptOnCancel=True)
            with matcher_workers(self._context):
                return action()

        with ThreadPoolExecutor(1, thread_name_prefix="backtest") as pool:
            answer = pool.submit(work)
            try:
                return self._wait(answer, group)
            except (PySparkException, Py4JError) as error:
                raise BacktestFailed(f"the backtest failed: {summary_of(error)}") from error
            finally:
                while not answer.done():  # Spark may start the job only now
                    self._context.cancelJobGroup(group)
                    wait([answer], _POLL_S)

    def _wait(self, answer: Future[_Answer], group: str) -> _Answer:
        while True:
            try:
                return answer.result(_POLL_S)
            except StillRunning:
                self._report_progress(group)

    def _report_progress(self, group: str) -> None:
        tracker = self._context.statusTracker()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = sorted(stage for info in infos if info is not None for stage in info.stageIds)
        share = 0.0
        for stage, part in zip(stages, (READING_SHARE, 1.0 - READING_SHARE), strict=False):
            if (info := tracker.getStageInfo(stage)) is not None and info.numTasks:
                share += part * info.numCompletedTasks / info.numTasks
        self._share_done = max(self._share_done, share)
        self._progress(self._share_done)
