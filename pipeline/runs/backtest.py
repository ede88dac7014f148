"""The backtest, which matches a history with the operators of the live pipeline, partitioned by key, round by round.

A round first reads the history and sends its events to shards in order, together with facts about the whole history.
Then a ``ShardRound`` matches each shard, and all variants see the same events in one task. If a round derives events
for other keys, they are the input of a later round. If lateness or finished keys are measured, a task reads the
observed streams before the rounds and makes the decisions (``shards.runs.decisions``).

An executor runs the tasks of a round: ``InProcess`` one after the other in this process, ``InSpark`` on all cores of a
machine or a cluster. Both give equal results.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.runs.deciding import observing_variants
from pipeline.runs.history import History
from pipeline.runs.tasks import FACTS, SUMMARY, UNLIMITED, BacktestOptions, Progress, Reported, RoundTask
from shards import ComparisonCounts, DeciderState, Decision, RoundPlan, VariantCounts
from streams import EventFileError

if TYPE_CHECKING:
    from pipeline.runs.in_process import InProcess
    from pipeline.runs.in_spark import InSpark


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestResult:
    """Result of a backtest.

    Attributes:
        events: Events of the history.
        first_us: Time of the earliest event. None without events.
        last_us: Time of the newest event.
        variants: The counts of each variant, by name. The first variant comes first.
        comparisons: The counts of results that differ between the first variant and another one, by name of the other
            one.
        rows: Rows of the first variant by kind, up to the limit, each as plain JSON. The ``added`` and ``lost`` results
            and the suspensions of another variant are under ``<label>.<variant>``. Rows are sorted by round and shard,
            and otherwise keep the order in which they were found. Suspensions have no limit.
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
    executor: InProcess | InSpark,
    histories: Mapping[str, History],
    plan: RoundPlan,
    options: BacktestOptions,
    progress: Progress = lambda _: None,
) -> BacktestResult:
    """Match past events with all variants of a plan. Return counts, the rows, and the differences between variants.

    Raises:
        EventFileError: A file cannot be read. The message names the file and the places.
        BacktestFailed: The executor gave up.
    """
    begin_s = time.time()  # not monotonic: tasks report their start by their machines' clocks
    collected = _Collected(plan, options.limit)
    if observing := observing_variants(histories, plan):
        outcomes = executor.decisions(histories, observing, lambda _: progress(0.0))
        plan = replace(plan, decisions=tuple(outcome for outcome in outcomes if isinstance(outcome, Decision)))
        collected.decisions, collected.deciders = (
            plan.decisions,
            [outcome for outcome in outcomes if isinstance(outcome, DeciderState)],
        )
    ordered = frozenset(name for name, history in histories.items() if history.is_ordered)
    ends = _Ends(len(plan.variants))
    for number in range(len(plan.rounds)):
        reads = plan.reads(number)
        task = RoundTask(
            plan=plan,
            number=number,
            options=options,
            histories={name: history for name, history in histories.items() if name in reads},
            ordered=ordered,
            newest_us=collected.newest_us,
            ends_us=ends.newest_us,
        )
        share = partial(_share, progress, number, len(plan.rounds))
        for label, variant, bodies in _reports(executor, task, share, ends):
            collected.take(label, variant, bodies, is_first=not number)
        if collected.error is not None:
            break
    executor.close()
    progress(1.0)
    if collected.error is not None:
        raise EventFileError(collected.error)
    return collected.result(begin_s, time.time() - begin_s)


def _share(progress: Progress, number: int, rounds: int, share: float) -> None:
    progress((number + share) / rounds)


def _reports(executor: InProcess | InSpark, task: RoundTask, progress: Progress, ends: _Ends) -> Iterable[Reported]:
    """Run a round, and return its reports. Repeat the round until all shards agree on the ends of derived streams.

    One run usually suffices. Another run is needed if timeouts at the end of the input cause the newest derived events,
    and operators that read these events depend on the time at the end.
    """
    if task.plan.is_open or task.options.shards == 1:
        return executor.run(task, progress)
    while True:
        reports = [*executor.run(task, progress)]
        summaries = [orjson.loads(body) for label, _, bodies in reports if label == SUMMARY for body in bodies]
        if ends.note([summary["ends"] for summary in summaries]):
            ends.add_handed_on([batch for summary in summaries for batch in summary["handed_on"]])
            return reports
        task, progress = replace(task, ends_us=ends.newest_us), partial(_done, progress)


def _done(progress: Progress, _: float) -> None:
    progress(1.0)


class _Ends:
    """The newest event time of each derived stream over all shards, by variant, as far as shards have reported."""

    def __init__(self, variants: int) -> None:
        self._newest_us: tuple[dict[str, int], ...] = tuple({} for _ in range(variants))

    @property
    def newest_us(self) -> tuple[Mapping[str, int], ...]:
        return tuple(map(dict, self._newest_us))

    def note(self, ends: Sequence[Sequence[Mapping[str, tuple[int, int]]]]) -> bool:
        """Add the ends of streams in each shard, by variant. Return whether every shard has reached the newest times.

        An end is a pair: the time of the newest event in the shard, and the time that the shard has reached.
        """
        for variant, known_us in enumerate(self._newest_us):
            found_us = _newest((stream, end[0]) for shard_ends in ends for stream, end in shard_ends[variant].items())
            known_us.update(found_us)
        return all(
            reached_us == known_us[stream]
            for shard_ends in ends
            for known_us, variant_ends in zip(self._newest_us, shard_ends, strict=True)
            for stream, (_, reached_us) in variant_ends.items()
        )

    def add_handed_on(self, batches: Iterable[tuple[int, str, int]]) -> None:
        """Add the newest times of batches for later rounds. A batch is given as (variant, stream, newest time)."""
        for variant, stream, time_us in batches:
            known_us = self._newest_us[variant]
            known_us[stream] = max(time_us, known_us.get(stream, time_us))


def _newest(times: Iterable[tuple[str, int]]) -> dict[str, int]:
    newest_us: dict[str, int] = {}
    for stream, time_us in times:
        newest_us[stream] = max(time_us, newest_us.get(stream, time_us))
    return newest_us


class _Collected:
    """Collects the reports of all tasks on the driver. All rows are counted, but only a limited number is kept."""

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
        reason: str | None = self.facts.get("error")
        return reason

    @property
    def newest_us(self) -> Mapping[str, int]:
        times_us: Mapping[str, int] = self.facts.get("newest_us", {})
        return times_us

    def result(self, begin_s: float, total_s: float) -> BacktestResult:
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
        """Collect a report of a task: facts about the histories, a shard's counts, or rows with a label.

        Facts are taken from the first round only, because later rounds repeat them.
        """
        documents = map(orjson.loads, bodies)
        if label == FACTS:
            for document in documents if is_first else ():
                began_s = min(document["began_s"], self.facts.get("began_s", document["began_s"]))
                self.facts = document | {"began_s": began_s}
        elif label == SUMMARY:
            for document in documents:
                self._add(document)
        else:
            collected_rows = self.rows.setdefault(self._place(label, variant), [])
            most = None if label in UNLIMITED else max(self._limit - len(collected_rows), 0)
            collected_rows += islice(documents, most)

    def _place(self, label: str, variant: int) -> str:
        return f"{label}.{self._plan.variants[variant].name}" if variant else label

    def _add(self, document: Mapping[str, Any]) -> None:
        for name, counts in zip(self.variants, document["variants"], strict=True):
            self.variants[name] += VariantCounts.from_document(counts)
        for name, counts in zip(self.comparisons, document["comparisons"], strict=True):
            self.comparisons[name] += ComparisonCounts(**counts)
