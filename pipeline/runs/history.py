"""The history of a backtest: event files, read as portions of events by shard and in order.

The usual readers read the files, which are divided into parts if possible. One task reads a part and holds a batch of
its events at a time, or all events of a CSV or XES file. If reading fails, the task does not fail. It reports a fact
with the reason, so that users see the reader's own words.

A portion is a batch of many events, because an executor moves and sorts portions at little cost. A shard's task then
sorts their events (``merging``). The facts of all files reach every shard before its portions. Event numbers rise in
the order of the files. So if events are derived from events of equal time, they have an order too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.runs.merging import Portion
from streams import AttributePath, EventBatch, EventFileError, StreamDeclaration
from streams.readers import ReaderOptions, iterate_batches, iterate_events, line_spans, read_batch

_PORTION_ROWS = 65_536  # events of a portion, before they are divided among the shards
_FILE_BITS = 40  # low bits of event numbers are the place in a file, the bits above are the file number
POSTED = -1
"""The variant index of posted events, which every variant gets."""

Cuts: TypeAlias = Mapping[str, Sequence[int]]
_IGNORED = (".", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Past events of a stream, in files.

    Attributes:
        files: Absolute paths, in order.
        options: How the files are read.
        declaration: The stream of the events. If None, events are read as ``forestall match`` reads them.
        is_ordered: Whether events are matched in the order of the files, as in a log. Otherwise, they are sorted by
            time, and events of equal time keep the order of the files.
        routes: The paths of further keys, by name of the key. Operators read the events by these keys.
        changes: For each file, the number of its events before each change of the tables (``RoundPlan.changes``). Empty
        if tables do not change.
    """

    files: tuple[Path, ...]
    options: ReaderOptions = field(default_factory=ReaderOptions)
    declaration: StreamDeclaration | None = None
    is_ordered: bool = False
    routes: Mapping[str, AttributePath] = field(default_factory=dict)
    changes: tuple[tuple[int, ...], ...] = ()

    def last_before(self, file: int) -> Sequence[int]:
        """For each change of the tables, return the arrival number of the last event of a file before the change.

        Arrival numbers order the events of all files.
        """
        return [(file << _FILE_BITS) + events - 1 for events in self.changes[file]] if self.changes else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The number and the times of the events of a history, known once the history is read.

    Facts of several parts can be added up, in the order of the parts.

    Attributes:
        first_us: Time of the earliest event. None without events.
        newest_us: Time of the newest event of each stream with events.
        error: Why the history cannot be read. None if it can.
    """

    events: int = 0
    first_us: int | None = None
    newest_us: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None

    def __add__(self, other: Facts) -> Facts:
        return Facts(
            events=self.events + other.events,
            first_us=min((time for time in (self.first_us, other.first_us) if time is not None), default=None),
            newest_us={
                name: max(times_us[name] for times_us in (self.newest_us, other.newest_us) if name in times_us)
                for name in {**self.newest_us, **other.newest_us}
            },
            error=other.error if self.error is None else self.error,
        )


class Source(NamedTuple):
    """The stream of events that are sent to shards, and which decisions and table changes precede them.

    Attributes:
        variant: Index of the variant that derived the events, or ``POSTED`` if they come from files.
        number: Index of the stream in the run.
        changes: How often the tables changed before the events.
        epoch: How many cuts of the stream (``RoundPlan.cuts``) are before the events.
        route: The further key by which the events are keyed. Empty for the correlation key.
    """

    variant: int = POSTED
    number: int = 0
    stream: str = ""
    changes: int = 0
    epoch: int = 0
    route: str = ""


class HistoryPlace(NamedTuple):
    """The shard to which facts or a portion of events are sent, then the members by which executors sort both.

    Attributes:
        is_portion: False for facts, which come first.
        source: The stream. Empty for facts.
        first_us: Time of a portion's earliest event. 0 for facts, and for events matched in the order of the files.
        begin: Offset of the part in the file, in bytes.
        row: Row of the portion's first event in the part.
    """

    shard: int
    is_portion: bool
    source: Source
    first_us: int
    file: int
    begin: int
    row: int


Dealt: TypeAlias = tuple[HistoryPlace, Facts | bytes]
"""Facts, or a portion as the bytes of ``EventBatch.to_bytes``."""


class Part(NamedTuple):
    """The input of a task: a file of a stream, or a span of the file's bytes."""

    stream: str
    file: int
    span: tuple[int, int] | None = None


def history_files(path: Path) -> tuple[Path, ...]:
    """Return the files at a path: the file itself, or all files below the folder, sorted by path.

    In a folder, names that begin with ``.`` or ``_`` are left out. Raise ``EventFileError`` if there is no file.
    """
    if path.is_file():
        return (path.resolve(),)
    if not path.is_dir():
        raise EventFileError(f"{path}: there is no such file or folder of events", file=str(path))
    files = sorted(
        file.resolve()
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(_IGNORED) for part in file.relative_to(path).parts)
    )
    if not files:
        raise EventFileError(f"{path}: the folder has no event files", file=str(path))
    return tuple(files)


def parts_of(histories: Mapping[str, History], parts: int) -> list[Part]:
    """Divide all files into about ``parts`` parts, which are read in parallel. Each file has an equal number of parts.

    A file is one part if repeated events are dropped, or if tables change during the run.
    """
    each = -(-parts // max(sum(len(history.files) for history in histories.values()), 1))
    return [
        Part(stream, number, span)
        for stream, history in histories.items()
        for number, path in enumerate(history.files)
        for span in ([*line_spans(path, history.options, each)] if _is_divided(history) else ()) or (None,)
    ]


def _is_divided(history: History) -> bool:
    return history.options.duplicates == "keep" and not history.changes


def received(dealt: Iterable[Dealt]) -> tuple[int, Facts, Iterator[tuple[Source, Iterator[Portion]]]]:
    """Split the input of a shard. Return the shard's index, its facts added up, and the portions of each source."""
    entries = iter(dealt)
    shard, facts = 0, Facts()
    for place, content in entries:
        shard = place.shard
        if not isinstance(content, Facts):
            groups = groupby(chain([(place, content)], entries), lambda entry: entry[0].source)
            return shard, facts, ((source, map(_portion, group)) for source, group in groups)
        facts += content
    return shard, facts, iter(())


def _portion(dealt: Dealt) -> Portion:
    place, body = dealt
    assert isinstance(body, bytes)
    events = EventBatch.from_bytes(body)
    return Portion(first_us=place.first_us, place=(place.file, place.begin, place.row), events=events)


def reading(histories: Mapping[str, History], shards: int, cuts: Cuts) -> Callable[[Iterable[Part]], Iterator[Dealt]]:
    """Return the function with which a task reads its parts. It yields facts and portions of events for the shards."""
    numbers = {stream: number for number, stream in enumerate(histories)}

    def read(parts: Iterable[Part]) -> Iterator[Dealt]:
        done = 0
        for part in parts:
            facts, history = Facts(), histories[part.stream]
            source = Source(number=numbers[part.stream], stream=part.stream)
            try:
                for batch in batches_of(history, part, done):
                    for part_source, events in _divided(batch, source, history.last_before(part.file), cuts):
                        place = _place(part)._replace(source=part_source, row=facts.events)
                        yield from _portions(events, place, history, shards)
                        facts += _facts_of(part.stream, events)
            except EventFileError as error:
                facts += Facts(error=error.message)
            yield from ((_place(part)._replace(shard=shard), facts) for shard in range(shards))
            done += facts.events
            if facts.error is not None:
                return

    return read


def batches_of(history: History, part: Part, done: int) -> Iterator[EventBatch]:
    """Yield the events of a part, with event numbers.

    ``done`` is the number of events in earlier parts. Event times that are line numbers continue from this number.

    Raises:
        EventFileError: The file cannot be read. Places in the message refer to the whole file.
    """
    path, row = history.files[part.file], (part.file << _FILE_BITS) + (part.span or (0, 0))[0]
    options = replace(history.options, span=part.span)
    try:
        if options.duplicates == "keep":
            batches = iterate_batches(path, options, history.declaration, rows=_PORTION_ROWS)
        else:
            batches = read_batch(path, options).slices(_PORTION_ROWS)
        for batch in batches:
            counted = batch.with_times(batch.time_us + done) if done and options.times == "line" else batch
            yield counted.numbered(row)
            row += len(batch)
    except EventFileError:
        if part.span is not None:
            deque(iterate_events(path, history.options, history.declaration), maxlen=0)
        raise


def read_history(history: History) -> list[EventBatch]:
    """Read the events of all files of a history, as a run reads them. Event times that are line numbers start anew.

    Raises:
        EventFileError: A file cannot be read.
    """
    parts = [Part(stream="", file=number) for number in range(len(history.files))]
    return [batch for part in parts for batch in batches_of(history, part, 0)]


def handed_on(batch: EventBatch, source: Source, origin: int, shards: int) -> Iterator[Dealt]:
    """Yield events that a shard has derived for a later round, as portions for the shards of their keys.

    ``origin`` is the number of the shard, counted over all rounds.
    """
    for row, part in enumerate(batch.slices(_PORTION_ROWS)):
        place = HistoryPlace(0, True, source, 0, origin, 0, row)
        yield from (
            (place._replace(shard=shard), events.to_bytes()) for shard, events in part.split_by_shard(shards).items()
        )


def _divided(
    batch: EventBatch, source: Source, changes: Sequence[int], cuts: Cuts
) -> Iterator[tuple[Source, EventBatch]]:
    for number, between in _epochs(batch, changes):
        for epoch, events in _epochs(between, cuts.get(source.stream, ())):
            yield source._replace(changes=number, epoch=epoch), events


def _epochs(batch: EventBatch, cuts: Sequence[int]) -> Iterator[tuple[int, EventBatch]]:
    """Split a batch after the arrival numbers in ``cuts``. Yield each part with the number of cuts before it."""
    if not cuts or batch.arrivals is None:
        yield 0, batch
        return
    ends = [*np.searchsorted(batch.arrivals, cuts, side="right").tolist(), len(batch)]
    for epoch, (first, end) in enumerate(pairwise([0, *ends])):
        if end > first:
            yield epoch, batch.slice(first, end - first)


def _portions(batch: EventBatch, place: HistoryPlace, history: History, shards: int) -> Iterator[Dealt]:
    for route, path in {"": None, **history.routes}.items():
        keyed = batch if path is None else batch.keyed_by(path)
        for shard, events in keyed.split_by_shard(shards).items():
            first_us = 0 if history.is_ordered else int(events.time_us.min())
            source = place.source._replace(route=route)
            yield place._replace(shard=shard, is_portion=True, source=source, first_us=first_us), events.to_bytes()


def _place(part: Part) -> HistoryPlace:
    begin, _ = part.span or (0, 0)
    return HistoryPlace(shard=0, is_portion=False, source=Source(), first_us=0, file=part.file, begin=begin, row=0)


def _facts_of(stream: str, batch: EventBatch) -> Facts:
    times_us = batch.time_us
    return Facts(events=len(batch), first_us=int(times_us.min()), newest_us={stream: int(times_us.max())})
