"""The backtest: history through the states of the live pipeline, partitioned by key over all cores, round by round.

The first stage reads the history and sends its events to shards in order, together with facts about the whole history;
so only the task that reads a file ever holds it whole in memory. The second takes each shard through a ``ShardRound``:
all variants see the same events in one task. Events that a round derives for other keys are the input of a later round;
the output of earlier rounds stays on disk until then. The rows of a shard are cut off at a limit before they go to the
driver; if a folder is given, all rows go to files. Where lateness or finished keys are measured, one task reads the
observed streams first, to decide (``shards.runs.decisions``).

The job uses plain RDDs, not frames, because the planner of frames takes longer to start than a small history to match.
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
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import orjson
from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.errors import PySparkException

from pipeline.errors import BacktestFailed
from pipeline.runs.deciding import deciding
from pipeline.runs.history import POSTED, Dealt, History, Source, deal_out, handed_on, in_shards, received
from pipeline.runs.merging import Portion, in_order
from pipeline.spark.account import summary_of
from pipeline.spark.workers import matcher_workers
from shards import (
    ComparisonCounts,
    DeciderState,
    Decision,
    RoundPlan,
    RoundRows,
    ShardRound,
    VariantCounts,
    run_exercises,
)
from streams import EventFileError, lines_of
from streams.compiling import run_exercise

Progress = Callable[[float], None]
"""Receives the share of work done, 0.0 to 1.0, never falling; an exception raised here ends the backtest."""

_POLL_S = 0.1
_READING_SHARE = 0.4
_FED_ROWS = 16_384  # state size is measured after each chunk of this many events
_FACTS = "facts"
_SUMMARY = "summary"
_HANDED_ON = "handed on"

_Reported: TypeAlias = tuple[str, int, Sequence[Any]]
"""A task's output: a label (of ``RoundRows``, facts, the summary or what is handed on), the variant, and JSON objects.

Under ``_HANDED_ON`` the objects are ``Dealt``, for a later round.
"""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions:
    """Options of a backtest.

    Attributes:
        shards: Parts into which keys are divided; more give finer progress, fewer give larger batches.
        limit: The most rows of each kind that are returned.
        output: A folder for all rows, JSON lines by kind and shard; every task must reach it.
    """

    shards: int
    limit: int = 10_000
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestResult:
    """Result of a backtest.

    Attributes:
        events: Events of the history.
        rounds: Number of rounds.
        first_us: Time of the earliest event; None without events.
        last_us: Time of the newest event.
        variants: Counts by name of the variant, the first variant first.
        comparisons: Counts by name of the variant that the first one was compared with.
        rows: Rows of the first variant by kind, up to the limit, each as plain JSON; and the ``added`` and ``lost``
            results by ``<label>.<variant>``. Ordered only by round, by shard and by time of finding.
        decisions: What was decided about the streams.
        deciders: The states of the deciders after the events.
        read_s: Wall-clock seconds for reading and distributing.
        match_s: Wall-clock seconds for matching.
    """

    events: int
    rounds: int
    first_us: int | None
    last_us: int | None
    variants: Mapping[str, VariantCounts]
    comparisons: Mapping[str, ComparisonCounts]
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    read_s: float
    match_s: float
    decisions: Sequence[Decision] = ()
    deciders: Sequence[DeciderState] = ()


def run_backtest(
    context: SparkContext,
    histories: Mapping[str, History],
    plan: RoundPlan,
    options: BacktestOptions,
    progress: Progress = lambda _: None,
) -> BacktestResult:
    """Match the histories of some streams.

    Raises:
        EventFileError: A file cannot be read; the message names the file and the places.
        BacktestFailed: Spark gave up.
    """
    begin_s = time.time()  # not monotonic: tasks report their start by their machines' clocks
    found = _Collected(plan, options.limit)
    if (decisions := deciding(context, histories, plan)) is not None:
        made_of = SparkWork(context, lambda _: progress(0.0)).run(decisions.collect)
        plan = replace(plan, decisions=tuple(one for one in made_of if isinstance(one, Decision)))
        found.decisions, found.deciders = plan.decisions, [one for one in made_of if isinstance(one, DeciderState)]
    ordered = frozenset(name for name, history in histories.items() if history.is_ordered)
    made: list[RDD[_Reported]] = []
    for number in range(len(plan.rounds)):
        reads = plan.reads(number)
        chosen = {name: one for name, one in histories.items() if name in reads}
        dealt = [deal_out(context, chosen, options.shards, plan.cuts)]
        dealt += [one.flatMap(partial(_handed_to, reads)) for one in made]
        matching = partial(_matched, plan, number, options, ordered, found.newest_us)
        said = in_shards(context.union(dealt), options.shards).mapPartitions(matching)
        is_last = number == len(plan.rounds) - 1
        if not is_last:
            made.append(said.persist(StorageLevel.DISK_ONLY))
        work = SparkWork(context, partial(_share, progress, number, len(plan.rounds)))
        for label, variant, bodies in work.run((said if is_last else said.filter(_is_reported)).collect):
            found.take(label, variant, bodies, is_first=not number)
        if found.error is not None:
            break
    for one in made:
        one.unpersist()
    progress(1.0)
    if found.error is not None:
        raise EventFileError(found.error)
    return found.result(begin_s, time.time() - begin_s)


def _share(progress: Progress, number: int, rounds: int, share: float) -> None:
    progress((number + share) / rounds)


def _is_reported(said: _Reported) -> bool:
    return said[0] != _HANDED_ON


def _handed_to(streams: frozenset[str], said: _Reported) -> Iterator[Dealt]:
    """The events among a task's output that a round with these streams reads."""
    label, _, things = said
    return (thing for thing in things if label == _HANDED_ON and thing[0].source.stream in streams)


class SparkWork:
    """Runs a Spark job in another thread, so that this thread can report progress and be interrupted."""

    def __init__(self, context: SparkContext, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        self._told = 0.0

    def run(self, action: Callable[[], _Answer]) -> _Answer:
        """Run ``action`` and return its result.

        Raises:
            BacktestFailed: Spark gave up.
        """
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
                while not answer.done():  # the job may begin only now
                    self._context.cancelJobGroup(group)
                    wait([answer], _POLL_S)

    def _wait(self, answer: Future[_Answer], group: str) -> _Answer:
        while True:
            try:
                return answer.result(_POLL_S)
            except StillRunning:
                self._tell(group)

    def _tell(self, group: str) -> None:
        """Report the progress of the stages: the first reads, the second matches."""
        tracker = self._context.statusTracker()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = sorted(stage for info in infos if info is not None for stage in info.stageIds)
        share = 0.0
        for stage, part in zip(stages, (_READING_SHARE, 1.0 - _READING_SHARE), strict=False):
            if (info := tracker.getStageInfo(stage)) is not None and info.numTasks:
                share += part * info.numCompletedTasks / info.numTasks
        self._told = max(self._told, share)
        self._progress(self._told)


class _Collected:
    """Collects the rows of all shards at the driver: counts of all rows, bodies up to a limit."""

    def __init__(self, plan: RoundPlan, limit: int) -> None:
        self._plan = plan
        self._limit = limit
        self.decisions: Sequence[Decision] = ()
        self.deciders: Sequence[DeciderState] = ()
        self.variants = {variant.name: VariantCounts() for variant in plan.variants}
        self.comparisons = {variant.name: ComparisonCounts() for variant in plan.variants[1:]}
        self.rows: dict[str, list[Mapping[str, Any]]] = {}
        self.facts: Mapping[str, Any] = {}

    @property
    def error(self) -> str | None:
        """Why the history cannot be read."""
        found: str | None = self.facts.get("error")
        return found

    @property
    def newest_us(self) -> Mapping[str, int]:
        """The time of the newest event of each stream with events."""
        found: Mapping[str, int] = self.facts.get("newest_us", {})
        return found

    def result(self, begin_s: float, total_s: float) -> BacktestResult:
        """The result, from the time at which the work began and the time that it took."""
        read_s = min(max(self.facts.get("began_s", begin_s) - begin_s, 0.0), total_s)
        return BacktestResult(
            events=self.facts.get("events", 0),
            rounds=len(self._plan.rounds),
            first_us=self.facts.get("first_us"),
            last_us=max(self.newest_us.values(), default=None),
            variants=self.variants,
            comparisons=self.comparisons,
            rows=self.rows,
            read_s=read_s,
            match_s=total_s - read_s,
            decisions=self.decisions,
            deciders=self.deciders,
        )

    def take(self, label: str, variant: int, bodies: Sequence[bytes], *, is_first: bool) -> None:
        """Collect rows, or add to the counts; facts are those of the first round."""
        documents = map(orjson.loads, bodies)
        if label == _FACTS:
            for document in documents if is_first else ():
                began_s = min(document["began_s"], self.facts.get("began_s", document["began_s"]))
                self.facts = document | {"began_s": began_s}
        elif label == _SUMMARY:
            for document in documents:
                self._add(document)
        else:
            kept = self.rows.setdefault(self._place(label, variant), [])
            kept += islice(documents, max(self._limit - len(kept), 0))

    def _place(self, label: str, variant: int) -> str:
        return f"{label}.{self._plan.variants[variant].name}" if variant else label

    def _add(self, document: Mapping[str, Any]) -> None:
        for name, counts in zip(self.variants, document["variants"], strict=True):
            self.variants[name] += VariantCounts.from_document(counts)
        for name, counts in zip(self.comparisons, document["comparisons"], strict=True):
            self.comparisons[name] += ComparisonCounts(**counts)


@dataclass(slots=True)
class ShardRows:
    """Passes on a task's rows for its shard up to a limit, and writes all of them to files."""

    names: Sequence[str]
    options: BacktestOptions
    shard: int
    files: ExitStack
    _open: dict[str, IO[bytes]] = field(default_factory=dict)
    _said: Counter[str] = field(default_factory=Counter)

    def of(self, found: Iterable[RoundRows]) -> Iterator[RoundRows]:
        """The rows that go to the driver."""
        for rows in found:
            place = f"{rows.label}.{self.names[rows.variant]}" if rows.variant else rows.label
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
        """Rename the finished files to their final names."""
        for place, file in self._open.items():
            file.close()
            Path(file.name).replace(Path(file.name).parent / f"{place}-{self.shard:05d}.jsonl")


def _matched(
    plan: RoundPlan,
    number: int,
    options: BacktestOptions,
    ordered: frozenset[str],
    newest_us: Mapping[str, int],
    dealt: Iterable[Dealt],
) -> Iterator[_Reported]:
    """The output of a task for the input of its shard in a round; the facts are those of the first round."""
    began_s = time.time()
    shard, facts, sources = received(dealt)
    yield _FACTS, 0, [orjson.dumps(asdict(facts) | {"began_s": began_s})]
    first = next(sources, None)
    if first is None or facts.error is not None:
        return
    if len(plan.variants) > 1:
        _load(tuple(run_exercises(plan)))
    one = ShardRound(plan, number, shard)
    with ExitStack() as files:
        rows = ShardRows([variant.name for variant in plan.variants], options, number * options.shards + shard, files)
        found = _found(one, chain([first], sources), newest_us or facts.newest_us, ordered)
        yield from ((some.label, some.variant, some.bodies.to_pylist()) for some in rows.of(found))
        rows.publish()
    summary = {
        "variants": [counts.to_document() for counts in one.counts],
        "comparisons": [counts.to_document() for counts in one.comparisons],
    }
    yield _SUMMARY, 0, [orjson.dumps(summary)]
    for variant, stream, events in one.handed_on:
        yield _HANDED_ON, variant, list(handed_on(events, Source(variant, 0, stream), rows.shard, options.shards))


def _found(
    one: ShardRound,
    sources: Iterable[tuple[Source, Iterator[Portion]]],
    newest_us: Mapping[str, int],
    ordered: frozenset[str],
) -> Iterator[RoundRows]:
    yield from one.begin()
    for source, portions in sources:
        is_posted = source.variant == POSTED
        variant = None if is_posted else source.variant
        for batch in in_order(portions, is_ordered=not is_posted or source.stream in ordered):
            for first in range(0, len(batch), _FED_ROWS):
                part = batch.slice(first, min(_FED_ROWS, len(batch) - first))
                yield from one.feed(source.stream, part, route=source.route, variant=variant, epoch=source.epoch)
    yield from one.finish(newest_us)


@cache
def _load(exercises: Sequence[str]) -> None:
    """Load kernels once per process, so that in a comparison the first variant does not pay for all."""
    for exercise in exercises:
        run_exercise(exercise)
