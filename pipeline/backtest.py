"""The backtest: history through the states of the live pipeline, partitioned by key over all cores.

Two Spark jobs. The first reads the history, deals its events out to shards and keeps them on disk in their order; so
nothing is ever whole in memory but one file in the task that reads it. The second takes each shard through a ``Trial``:
what is asked about and everything that it is compared with see the same events in one task. What a shard finds is cut
off at a limit before it goes to the driver; all of it goes to files where a folder is named.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as StillRunning
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import orjson
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.storagelevel import StorageLevel

from pipeline.errors import BacktestFailed
from pipeline.history import History, Step, history_frame, portions_of
from pipeline.merging import in_order
from pipeline.spark_account import summary_of
from pipeline.trial import ComparisonCounts, Trial, TrialPlan, TrialRows, VariantCounts
from pipeline.warmup import exercise
from streams import EventFileError, lines_of

Progress = Callable[[float], None]
"""Told the share that is done, 0.0 to 1.0, never falling; what it raises ends the backtest."""

_POLL_S = 0.2
_READING_SHARE = 0.4
_CHUNK_ROWS = 1_000
_FED_ROWS = 16_384  # after so many events it is looked at how large the state is; fewer cost more than they tell
_SUMMARY = "summary"
_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("variant", pa.int32()),
        pa.field("label", pa.string()),
        pa.field("body", pa.binary()),
    ]
)
_DDL = "shard INT, variant INT, label STRING, body BINARY"

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions:
    """How a backtest is run.

    Attributes:
        shards: Parts that the keys are dealt out to; more of them are finer progress, fewer are larger batches.
        limit: At most so many rows of each kind are returned.
        output: A folder that gets all rows, JSON lines by kind and shard; it must be reachable for every task.
    """

    shards: int
    limit: int = 10_000
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestResult:
    """What a backtest found.

    Attributes:
        events: Events of the history.
        first_us: Time of the earliest; None where there is none.
        last_us: Time of the newest.
        variants: Counts by the name of the variant, the first one first.
        comparisons: Counts by the name of the variant that the first one was compared with.
        rows: Some rows of the first variant by kind, each as plain JSON, and the alerts that are ``added`` and ``lost``
            by ``<label>.<variant>``; no order but that of shards and of finding.
        read_s: Wall clock of reading and dealing out, in seconds.
        match_s: Wall clock of matching.
    """

    events: int
    first_us: int | None
    last_us: int | None
    variants: Mapping[str, VariantCounts]
    comparisons: Mapping[str, ComparisonCounts]
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    read_s: float
    match_s: float


def run_backtest(
    session: SparkSession,
    history: History,
    plan: TrialPlan,
    options: BacktestOptions,
    progress: Progress = lambda _: None,
) -> BacktestResult:
    """Match a history.

    Raises:
        EventFileError: A file cannot be read; the message names it and the places.
        BacktestFailed: Spark gave up.
    """
    frame = history_frame(session, history, options.shards).persist(StorageLevel.DISK_ONLY)
    try:
        begin_s = time.monotonic()
        reading = _Job(session, progress, 0.0, _READING_SHARE)
        facts = reading.run(lambda: _facts(frame))
        if facts["error"] is not None:
            raise EventFileError(facts["error"])
        read_s = time.monotonic() - begin_s
        matching = _Job(session, progress, _READING_SHARE, 1.0)
        rows = frame.mapInArrow(_matching(plan, options, facts["last"] or 0, is_ordered=history.is_ordered), _DDL)
        found = _Collected(plan, options.limit)
        matching.run(lambda: found.take(rows))
        progress(1.0)
        return BacktestResult(
            events=facts["events"] or 0,
            first_us=facts["first"],
            last_us=facts["last"],
            variants=found.variants,
            comparisons=found.comparisons,
            rows=found.rows,
            read_s=read_s,
            match_s=time.monotonic() - begin_s - read_s,
        )
    finally:
        frame.unpersist()


def _facts(frame: DataFrame) -> Mapping[str, Any]:
    """What is known of a history once it is read; reading it happens here."""
    row = frame.agg(
        sql.sum("events").alias("events"),
        sql.min("first").alias("first"),
        sql.max("last").alias("last"),
        sql.max("error").alias("error"),
    ).collect()[0]
    return cast("Mapping[str, Any]", row.asDict())


class _Job:
    """Work of Spark, done in another thread, so that this one can tell how far it is and may be interrupted."""

    def __init__(self, session: SparkSession, progress: Progress, first: float, last: float) -> None:
        self._context = session.sparkContext
        self._progress = progress
        self._first, self._last = first, last
        self._told = first

    def run(self, action: Callable[[], _Answer]) -> _Answer:
        """The answer of ``action``.

        Raises:
            BacktestFailed: Spark gave up.
        """
        group = f"backtest-{uuid.uuid4().hex}"

        def work() -> _Answer:
            self._context.setJobGroup(group, "backtest", interruptOnCancel=True)
            return action()

        with ThreadPoolExecutor(1, thread_name_prefix="backtest") as pool:
            answer = pool.submit(work)
            try:
                return self._wait(answer, group)
            except (PySparkException, Py4JError) as error:
                raise BacktestFailed(f"the backtest failed: {summary_of(error)}") from error
            finally:
                while not answer.done():  # also a job that begins only now
                    self._context.cancelJobGroup(group)
                    wait([answer], _POLL_S)

    def _wait(self, answer: Future[_Answer], group: str) -> _Answer:
        while True:
            try:
                return answer.result(_POLL_S)
            except StillRunning:
                self._tell(group)

    def _tell(self, group: str) -> None:
        tracker = self._context.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for number in info.stageIds if info is not None else ():
                if (stage := tracker.getStageInfo(number)) is not None:
                    done, total = done + stage.numCompletedTasks, total + stage.numTasks
        share = self._first + (self._last - self._first) * (done / total if total else 0.0)
        self._told = max(self._told, share)
        self._progress(self._told)


class _Collected:
    """Rows of all shards at the driver: counts of everything, bodies up to a limit."""

    def __init__(self, plan: TrialPlan, limit: int) -> None:
        self._plan = plan
        self._limit = limit
        self.variants = {variant.name: VariantCounts() for variant in plan.variants}
        self.comparisons = {variant.name: ComparisonCounts() for variant in plan.variants[1:]}
        self.rows: dict[str, list[Mapping[str, Any]]] = {}

    def take(self, frame: DataFrame) -> None:
        """Run the job and keep what it returns."""
        for label, variant, body in sorted(
            ((row["label"], row["variant"], bytes(row["body"])) for row in frame.collect()), key=lambda row: row[:2]
        ):
            document = orjson.loads(body)
            if label == _SUMMARY:
                self._add(document)
                continue
            kept = self.rows.setdefault(self._place(label, variant), [])
            if len(kept) < self._limit:
                kept.append(document)

    def _place(self, label: str, variant: int) -> str:
        return f"{label}.{self._plan.variants[variant].name}" if variant else label

    def _add(self, document: Mapping[str, Any]) -> None:
        for name, counts in zip(self.variants, document["variants"], strict=True):
            self.variants[name] += VariantCounts.from_document(counts)
        for name, counts in zip(self.comparisons, document["comparisons"], strict=True):
            self.comparisons[name] += ComparisonCounts(**counts)


@dataclass(slots=True)
class _ShardRows:
    """What one task says of its shard: rows up to a limit, and all of them into files."""

    plan: TrialPlan
    options: BacktestOptions
    shard: int
    files: ExitStack
    _open: dict[str, IO[bytes]] = field(default_factory=dict)
    _said: Counter[str] = field(default_factory=Counter)

    def of(self, found: Iterable[TrialRows]) -> Iterator[TrialRows]:
        """The rows that go to the driver."""
        for rows in found:
            place = f"{rows.label}.{self.plan.variants[rows.variant].name}" if rows.variant else rows.label
            if self.options.output is not None:
                self._file(self.options.output, place).write(lines_of(rows.bodies))
            free = self.options.limit - self._said[place]
            self._said[place] += len(rows)
            if free > 0:
                yield rows if free >= len(rows) else replace(rows, bodies=rows.bodies[:free])

    def _file(self, folder: Path, place: str) -> IO[bytes]:
        if place not in self._open:
            final = folder / f"{place}-{self.shard:05d}.jsonl"
            partial = folder / f".{final.name}.{os.getpid()}"
            file = self.files.enter_context(partial.open("wb"))
            self._open[place] = file
        return self._open[place]

    def publish(self) -> None:
        """Give the files their names: all of the shard is in them."""
        for place, file in self._open.items():
            file.close()
            Path(file.name).replace(Path(file.name).parent / f"{place}-{self.shard:05d}.jsonl")


def _matching(plan: TrialPlan, options: BacktestOptions, newest_us: int, *, is_ordered: bool) -> Step:
    """What a task does with the rows of its shard."""

    def match(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _warmed()
        parts = iter(rows)
        first = next((part for part in parts if part.num_rows), None)
        if first is None:
            return
        shard = first.column("shard")[0].as_py()
        trial = Trial(plan, shard)
        with ExitStack() as files:
            said = _ShardRows(plan, options, shard, files)
            found = said.of(_found(trial, _chain(first, parts), newest_us, is_ordered=is_ordered))
            yield from _packed(shard, found)
            said.publish()
        summary = {
            "variants": [counts.to_document() for counts in trial.counts],
            "comparisons": [counts.to_document() for counts in trial.comparisons],
        }
        told = pa.array([orjson.dumps(summary)], pa.binary())
        yield from _packed(shard, [TrialRows(label=_SUMMARY, variant=0, bodies=told)])

    return match


def _found(trial: Trial, rows: Iterable[pa.RecordBatch], newest_us: int, *, is_ordered: bool) -> Iterator[TrialRows]:
    yield from trial.begin()
    for batch in in_order(portions_of(rows), is_ordered=is_ordered):
        for first in range(0, len(batch), _FED_ROWS):
            yield from trial.feed(batch.slice(first, min(_FED_ROWS, len(batch) - first)))
    yield from trial.finish(newest_us)


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _packed(shard: int, found: Iterable[TrialRows]) -> Iterator[pa.RecordBatch]:
    """As batches of at least so many rows, but for the last one."""
    waiting: list[pa.RecordBatch] = []
    for rows in found:
        waiting.append(_batch(shard, rows))
        if sum(len(one) for one in waiting) >= _CHUNK_ROWS:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def _batch(shard: int, rows: TrialRows) -> pa.RecordBatch:
    same = (shard, rows.variant, rows.label)
    fields = list(_SCHEMA)[: len(same)]
    arrays = [pa.repeat(pa.scalar(value, field.type), len(rows)) for value, field in zip(same, fields, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, rows.bodies], schema=_SCHEMA)


@cache
def _warmed() -> int:
    """Kernels are loaded once per process, so that the time of nobody's first batch has that in it."""
    return exercise()
