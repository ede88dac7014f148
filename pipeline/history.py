"""History for a backtest: event files as portions of events by shard and in order.

Files are read by the usual readers, divided into parts where possible. One task reads a part and holds some of its
events at a time (CSV and XES: all). A reading error does not fail the task but becomes a fact with the reason, so that
users see the reader's own words.

A portion is a batch of many events: Spark moves and orders portions, which costs it next to nothing, and a shard's task
puts their events in order (``merging``). The facts of all files reach every shard before its portions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyspark import RDD, SparkContext

from pipeline.merging import Portion
from streams import EventBatch, EventFileError, StreamDeclaration
from streams.readers import ReaderOptions, iterate_batches, iterate_events, line_spans

_PORTION_ROWS = 65_536  # over all shards
_PARTS_PER_CORE = 2
_IGNORED = (".", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Past events in files.

    Attributes:
        files: Absolute paths, in order.
        options: How the files are read.
        declaration: The stream of the events; None: events are read as ``forestall match`` reads them.
        is_ordered: Whether events are matched in the order of the files, whatever their times, as in a log; otherwise
            in the order of their times, ties in the order of the files.
    """

    files: tuple[Path, ...]
    options: ReaderOptions = field(default_factory=ReaderOptions)
    declaration: StreamDeclaration | None = None
    is_ordered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about a history that was read; facts of its parts add up, in order.

    Attributes:
        events: Number of events.
        first_us: Time of the earliest event; None without events.
        last_us: Time of the newest event.
        error: Why the history cannot be read.
    """

    events: int = 0
    first_us: int | None = None
    last_us: int | None = None
    error: str | None = None

    def __add__(self, other: Facts) -> Facts:
        return Facts(
            events=self.events + other.events,
            first_us=min((time for time in (self.first_us, other.first_us) if time is not None), default=None),
            last_us=max((time for time in (self.last_us, other.last_us) if time is not None), default=None),
            error=other.error if self.error is None else self.error,
        )


class HistoryPlace(NamedTuple):
    """Sort key of everything that is sent to shards.

    Attributes:
        shard: Target shard.
        is_portion: False for facts, which come first.
        first_us: Time of a portion's earliest event; 0 for facts, and if the order of the files counts.
        file: Number of the file.
        begin: Offset of the part in the file, in bytes.
        row: Row of the portion's first event in the part.
    """

    shard: int
    is_portion: bool
    first_us: int
    file: int
    begin: int
    row: int


Dealt: TypeAlias = tuple[HistoryPlace, Facts | bytes]
"""Facts, or a portion as the bytes of ``EventBatch.to_bytes``."""


class Part(NamedTuple):
    """The input of a task: a file, or a span of bytes of a file."""

    file: int
    span: tuple[int, int] | None


def history_files(path: Path) -> tuple[Path, ...]:
    """A file, or all files below a folder sorted by path, without names and folders that begin with . or _.

    Raises:
        EventFileError: There are no files.
    """
    if path.is_file():
        return (path.resolve(),)
    if not path.is_dir():
        raise EventFileError(f"{path}: there is no such file or folder of events", file=str(path))
    found = sorted(
        file.resolve()
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(_IGNORED) for part in file.relative_to(path).parts)
    )
    if not found:
        raise EventFileError(f"{path}: the folder has no event files", file=str(path))
    return tuple(found)


def deal_out(context: SparkContext, history: History, shards: int) -> RDD[Dealt]:
    """Facts and portions by shard, one partition each, in the order of their places.

    Args:
        context: From ``build_context``.
        history: The history to read.
        shards: The number of partitions.
    """
    parts = parts_of(history, _PARTS_PER_CORE * context.defaultParallelism)
    # Times that count the events of all files are only known to a task that reads all files.
    tasks = 1 if history.options.times == "line" else len(parts)
    dealt = context.parallelize(parts, tasks).mapPartitions(reading(history, shards))
    return dealt.repartitionAndSortWithinPartitions(shards, itemgetter(0))


def parts_of(history: History, parts: int) -> list[Part]:
    """The parts that can be read in parallel: about ``parts`` in all, divided equally among the files."""
    each = -(-parts // len(history.files))
    return [
        Part(number, span)
        for number, path in enumerate(history.files)
        for span in ([*line_spans(path, history.options, each)] or (None,))
    ]


def received(dealt: Iterable[Dealt]) -> tuple[int, Facts, Iterator[Portion]]:
    """The input of one shard: its number, the facts of all files, and its portions."""
    things = iter(dealt)
    shard, facts = 0, Facts()
    for place, thing in things:
        if not isinstance(thing, Facts):
            return shard, facts, map(_portion, chain([(place, thing)], things))
        shard, facts = place.shard, facts + thing
    return shard, facts, iter(())


def _portion(dealt: Dealt) -> Portion:
    place, body = dealt
    assert isinstance(body, bytes)
    events = EventBatch.from_bytes(body)
    return Portion(first_us=place.first_us, place=(place.file, place.begin, place.row), events=events)


def reading(history: History, shards: int) -> Callable[[Iterable[Part]], Iterator[Dealt]]:
    """The function that a task applies to its parts."""

    def read(parts: Iterable[Part]) -> Iterator[Dealt]:
        done = 0
        for part in parts:
            facts = Facts()
            try:
                for batch in _batches(history, part, done):
                    yield from _portions(batch, part, facts.events, shards, is_ordered=history.is_ordered)
                    facts += _facts_of(batch)
            except EventFileError as error:
                facts += Facts(error=error.message)
            yield from ((_place(part, shard), facts) for shard in range(shards))
            done += facts.events
            if facts.error is not None:
                return

    return read


def _batches(history: History, part: Part, done: int) -> Iterator[EventBatch]:
    """The events of a part.

    Raises:
        EventFileError: The file cannot be read; places in the message refer to the whole file.
    """
    path = history.files[part.file]
    options = replace(history.options, span=part.span)
    try:
        for batch in iterate_batches(path, options, history.declaration, rows=_PORTION_ROWS):
            yield batch.with_times(batch.time_us + done) if done and options.times == "line" else batch
    except EventFileError:
        if part.span is not None:
            deque(iterate_events(path, history.options, history.declaration), maxlen=0)
        raise


def _portions(batch: EventBatch, part: Part, row: int, shards: int, *, is_ordered: bool) -> Iterator[Dealt]:
    """A portion for each shard that has some of the events."""
    for shard, events in batch.split_by_shard(shards).items():
        first_us = 0 if is_ordered else int(events.time_us.min())
        yield _place(part, shard)._replace(is_portion=True, first_us=first_us, row=row), events.to_bytes()


def _place(part: Part, shard: int) -> HistoryPlace:
    """The place of a part's facts."""
    begin, _ = part.span or (0, 0)
    return HistoryPlace(shard=shard, is_portion=False, first_us=0, file=part.file, begin=begin, row=0)


def _facts_of(batch: EventBatch) -> Facts:
    times_us = batch.time_us
    return Facts(events=len(batch), first_us=int(times_us.min()), last_us=int(times_us.max()))
