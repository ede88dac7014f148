"""The backtest of a project: its streams in shards, round by round.

Each round is one Spark job. The first reads the files of posted streams, one task per file, and sends their events to
shards by key. Each later round gets the derived events that earlier rounds have handed on, distributed by their keys.
The output of a round stays on disk until the last round is done; the driver gets counts, and rows up to a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson
from pyspark import RDD, SparkContext, StorageLevel

from pipeline.backtest import BacktestOptions, Progress, ShardRows, SparkWork
from shards import ChainPlan, ChainShard, RowBlock, TrialRows
from streams import AttributePath, Event, EventBatch, EventFileError
from streams.readers import ReaderOptions, read_batch

_PORTION_ROWS = 65_536
_FILE_BITS = 40  # low bits of event numbers: the row in a file; the bits above: the file number
_FACTS, _COUNTS, _HANDED_ON = "facts", "counts", "handed on"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInput:
    """The input file of one stream.

    Attributes:
        stream: Name of the stream.
        file: A file of events; every task must reach it.
        options: How the file is read.
        routes: The further keys that patterns use, by name.
    """

    stream: str
    file: Path
    options: ReaderOptions
    routes: Mapping[str, AttributePath]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainResult:
    """Result of the backtest of a project.

    Attributes:
        events: Posted events that were read.
        rounds: Number of rounds.
        counts: Rows by kind.
        rows: Rows by kind, up to the limit, as JSON objects in UTF-8; ordered only by round and shard.
    """

    events: int
    rounds: int
    counts: Mapping[str, int]
    rows: Mapping[str, Sequence[bytes]]


class _Place(NamedTuple):
    """The target of some events; facts of files go to the first shard, before every stream."""

    shard: int
    stream: str
    route: str
    source: int
    row: int


_Dealt: TypeAlias = tuple[_Place, bytes]
_Said: TypeAlias = tuple[str, tuple[Any, ...]]
"""A task's output: a label, and either events handed on or JSON objects."""


def run_chain(
    context: SparkContext,
    inputs: Sequence[ChainInput],
    plan: ChainPlan,
    options: BacktestOptions,
    progress: Progress = lambda _: None,
) -> ChainResult:
    """Match a project over files.

    Raises:
        EventFileError: A file cannot be read; the message names the file and the places.
        BacktestFailed: Spark gave up.
    """
    found = _Collected(options.limit)
    read = context.parallelize(list(enumerate(inputs)), max(len(inputs), 1)).flatMap(_reading(options.shards))
    dealt, made = [read], list[RDD[_Said]]()
    for number in range(len(plan.rounds)):
        said = _round(context.union(dealt), plan, number, options).persist(StorageLevel.DISK_ONLY)
        made.append(said)
        share = _share(progress, number, len(plan.rounds))
        for label, bodies in SparkWork(context, share).run(said.filter(_is_reported).collect):
            found.take(label, bodies)
        if found.errors:
            break
        dealt = [one.flatMap(_handed_to(plan, number + 1)) for one in made]
    for one in made:
        one.unpersist()
    progress(1.0)
    if found.errors:
        raise EventFileError(found.errors[0])
    return ChainResult(events=found.events, rounds=len(plan.rounds), counts=found.counts, rows=found.rows)


class _Collected:
    """Collects the output of tasks at the driver."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.events = 0
        self.errors: list[str] = []
        self.counts: Counter[str] = Counter()
        self.rows: dict[str, list[bytes]] = {}

    def take(self, label: str, bodies: Sequence[bytes]) -> None:
        """Collect rows up to the limit, and sum up facts and counts."""
        if label == _FACTS:
            for fact in map(orjson.loads, bodies):
                self.events += fact["events"]
                self.errors += [fact["error"]] if fact["error"] else []
        elif label == _COUNTS:
            for counts in map(orjson.loads, bodies):
                self.counts.update(counts)
        else:
            kept = self.rows.setdefault(label, [])
            kept += islice(bodies, max(self._limit - len(kept), 0))


def _share(progress: Progress, number: int, rounds: int) -> Progress:
    return lambda share: progress((number + share) / rounds)


def _reading(shards: int) -> Callable[[tuple[int, ChainInput]], Iterator[_Dealt]]:
    """The function that a task applies to a file: read as ``forestall run`` does, distribute events by each key."""

    def read(numbered: tuple[int, ChainInput]) -> Iterator[_Dealt]:
        number, one = numbered
        try:
            batch, error = read_batch(one.file, one.options), ""
        except EventFileError as refused:
            batch, error = EventBatch.from_events([]), refused.message
        batch = batch.numbered(number << _FILE_BITS)
        yield _Place(0, "", "", number, 0), orjson.dumps({"events": len(batch), "error": error})
        yield from _portions(batch, shards, one.stream, "", 0)
        for route, path in one.routes.items():
            yield from _portions(batch.keyed_by(path), shards, one.stream, route, 0)

    return read


def _portions(batch: EventBatch, shards: int, stream: str, route: str, source: int) -> Iterator[_Dealt]:
    for first in range(0, len(batch), _PORTION_ROWS):
        portion = batch.slice(first, min(_PORTION_ROWS, len(batch) - first))
        for shard, part in portion.split_by_shard(shards).items():
            yield _Place(shard, stream, route, source, first), part.to_bytes()


def _round(dealt: RDD[_Dealt], plan: ChainPlan, number: int, options: BacktestOptions) -> RDD[_Said]:
    ordered = dealt.repartitionAndSortWithinPartitions(options.shards, itemgetter(0))
    return ordered.mapPartitions(_matching(plan, number, options))


def _matching(plan: ChainPlan, number: int, options: BacktestOptions) -> Callable[[Iterable[_Dealt]], Iterator[_Said]]:
    """The function that a task applies to the input of its shard in a round."""

    def match(dealt: Iterable[_Dealt]) -> Iterator[_Said]:
        shard: ChainShard | None = None
        counts: Counter[str] = Counter()
        later: dict[str, list[Event]] = {}

        def noted(blocks: list[RowBlock]) -> Iterator[TrialRows]:
            assert shard is not None, "rows come of a shard"
            for stream, event in shard.handed_on(blocks):
                later.setdefault(stream, []).append(event)
            for block in blocks:
                counts[block.found.kind.name] += len(block)
                yield TrialRows(label=block.found.kind.name, variant=0, bodies=block.found.bodies)

        with ExitStack() as files:
            rows: ShardRows | None = None
            for place, body in dealt:
                if not place.stream:
                    yield _FACTS, (body,)
                    continue
                if shard is None or rows is None:
                    shard = ChainShard(plan, number, place.shard)
                    rows = ShardRows((), options, number * options.shards + place.shard, files)
                yield from _told(rows.of(noted(shard.feed(place.stream, place.route, EventBatch.from_bytes(body)))))
            if shard is None or rows is None:
                return
            yield from _told(rows.of(noted(shard.finish())))
            rows.publish()
            source = rows.shard
        yield _COUNTS, (orjson.dumps(counts),)
        for stream, events in later.items():
            yield _HANDED_ON, tuple(_portions(EventBatch.from_events(events), options.shards, stream, "", source))

    return match


def _told(found: Iterable[TrialRows]) -> Iterator[_Said]:
    return ((rows.label, tuple(rows.bodies.to_pylist())) for rows in found)


def _is_reported(said: _Said) -> bool:
    return said[0] != _HANDED_ON


def _handed_to(plan: ChainPlan, number: int) -> Callable[[_Said], Iterator[_Dealt]]:
    """The function that selects the events handed on to streams of a round."""
    streams = frozenset(plan.rounds[number]) if number < len(plan.rounds) else frozenset()

    def handed(said: _Said) -> Iterator[_Dealt]:
        label, things = said
        if label == _HANDED_ON:
            for thing in things:
                if thing[0].stream in streams:
                    yield thing

    return handed
