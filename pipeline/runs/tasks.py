"""One round of a backtest as a task: its input, and how the events of a shard are matched.

A shard's task returns its rows up to a limit. If a folder is given, the task writes all rows to files there.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

import orjson

from pipeline.runs.history import POSTED, Dealt, History, Part, Source, handed_on, reading, received
from pipeline.runs.merging import Portion, in_order
from shards import RESULT_KINDS, FedPlace, RoundPlan, RoundRows, ShardRound, run_exercises
from streams import lines_of
from streams.compiling import run_exercise

FACTS = "facts"
SUMMARY = "summary"
HANDED_ON = "handed on"
UNLIMITED = frozenset(kind.name for kind in RESULT_KINDS.values() if kind.stops)
"""Kinds of rows without a limit: suspensions, which explain why results are missing."""

_FED_ROWS = 16_384  # events of a chunk, after which the state's size is measured

Progress = Callable[[float], None]
"""Receives the share of work done, 0.0 to 1.0, never falling; an exception raised here ends the backtest."""

READING_SHARE = 0.4
"""The share of a round's progress that reading its files takes."""

Reported: TypeAlias = tuple[str, int, Sequence[Any]]
"""A task's output: a label (of ``RoundRows``, facts, the summary or ``HANDED_ON``), the variant, and JSON objects.

Under ``HANDED_ON`` the objects are ``Dealt``, for a later round.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions:
    """Options of a backtest.

    Attributes:
        shards: Number of parts into which keys are divided. More parts give finer progress, fewer give larger batches.
        limit: The most rows that are returned of each kind. The kinds of ``UNLIMITED`` have no limit.
        output: A folder for all rows, as JSON lines by kind and shard. Every task must reach it.
    """

    shards: int
    limit: int = 10_000
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTask:
    """The work of one round of a backtest. It is sent to the processes that run the tasks of the round.

    Attributes:
        histories: The histories that the round reads, by stream.
        ordered: Streams whose events are matched in the order of the files.
        newest_us: Time of the newest event of each posted stream. Empty in the first round.
        ends_us: For each variant, the newest event time of each derived stream over all shards. Earlier rounds and
            earlier runs of this round have found these times. Empty if none are known.
    """

    plan: RoundPlan
    number: int
    options: BacktestOptions
    histories: Mapping[str, History]
    ordered: frozenset[str]
    newest_us: Mapping[str, int]
    ends_us: tuple[Mapping[str, int], ...] = ()

    @property
    def is_last(self) -> bool:
        return self.number == len(self.plan.rounds) - 1

    @property
    def reads_lines(self) -> bool:
        """Whether event times are line numbers, counted over all files. The files are then read one after another."""
        return any(history.options.times == "line" for history in self.histories.values())

    def reader(self) -> Callable[[Iterable[Part]], Iterator[Dealt]]:
        """Return the function that reads parts of the histories. Its process need not import the matcher."""
        return reading(self.histories, self.options.shards, self.plan.cuts)

    def handed_to(self, reported: Reported) -> Iterator[Dealt]:
        """Yield the derived events that this round reads, given a report of an earlier round."""
        label, _, entries = reported
        streams = self.plan.reads(self.number)
        return (entry for entry in entries if label == HANDED_ON and entry[0].source.stream in streams)

    def matched(self, dealt: Iterable[Dealt]) -> Iterator[Reported]:
        """Match the input of one shard. Yield reports: facts, rows, counts, and derived events for later rounds."""
        began_s = time.time()
        shard, facts, sources = received(dealt)
        yield FACTS, 0, [orjson.dumps(asdict(facts) | {"began_s": began_s})]
        first = next(sources, None)
        if first is None or facts.error is not None:
            return
        plan, shards = self.plan, self.options.shards
        if len(plan.variants) > 1:
            _load(tuple(run_exercises(plan)))
        shard_round = ShardRound(plan, self.number, shard)
        with ExitStack() as files:
            names = [variant.name for variant in plan.variants]
            rows = ShardRows(names, self.options, self.number * shards + shard, files)
            round_rows = chain(
                _fed_rows(shard_round, chain([first], sources), self.ordered),
                shard_round.finish(self.newest_us or facts.newest_us, self.ends_us),
            )
            yield from ((block.label, block.variant, block.bodies.to_pylist()) for block in rows.of(round_rows))
            rows.publish(is_repeated=any(self.ends_us))
        handed_on_events = list(shard_round.handed_on)
        summary = {
            "variants": [counts.to_document() for counts in shard_round.counts],
            "comparisons": [counts.to_document() for counts in shard_round.comparisons],
            "ends": [{stream: [*end] for stream, end in ends.items()} for ends in shard_round.ends],
            "handed_on": [[variant, stream, int(events.time_us.max())] for variant, stream, events in handed_on_events],
        }
        yield SUMMARY, 0, [orjson.dumps(summary)]
        for variant, stream, events in handed_on_events:
            yield HANDED_ON, variant, list(handed_on(events, Source(variant, 0, stream), rows.shard, shards))


@dataclass(slots=True)
class ShardRows:
    """Passes on a limited number of a shard's rows, for the driver.

    If a folder is given, all rows are also written to files there.
    """

    names: Sequence[str]
    options: BacktestOptions
    shard: int
    files: ExitStack
    _open: dict[str, IO[bytes]] = field(default_factory=dict)
    _sent: Counter[str] = field(default_factory=Counter)

    def of(self, round_rows: Iterable[RoundRows]) -> Iterator[RoundRows]:
        """Yield the rows within the limit, for the driver. If a folder is given, write all rows to files there."""
        for rows in round_rows:
            place = f"{rows.label}.{self.names[rows.variant]}" if rows.variant else rows.label
            if self.options.output is not None:
                self._file(self.options.output, place).write(lines_of(rows.bodies))
            free = len(rows) if rows.label in UNLIMITED else self.options.limit - self._sent[place]
            self._sent[place] += len(rows)
            if free > 0:
                yield rows if free >= len(rows) else replace(rows, bodies=rows.bodies[:free])

    def _file(self, folder: Path, place: str) -> IO[bytes]:
        if place not in self._open:
            partial = folder / f".{self._final(place).name}.{os.getpid()}"
            file = self.files.enter_context(partial.open("wb"))
            self._open[place] = file
        return self._open[place]

    def publish(self, *, is_repeated: bool) -> None:
        """Rename the finished files to their final names.

        If the round has run before, remove files of the earlier run.
        """
        for place, file in self._open.items():
            file.close()
            Path(file.name).replace(self._final(place))
        if is_repeated and self.options.output is not None:
            finals = set(map(self._final, self._open))
            for earlier in self.options.output.glob(f"*-{self.shard:05d}.jsonl"):
                if earlier not in finals:
                    earlier.unlink(missing_ok=True)

    def _final(self, place: str) -> Path:
        folder = self.options.output
        assert folder is not None  # a file is open
        return folder / f"{place}-{self.shard:05d}.jsonl"


def _fed_rows(
    shard_round: ShardRound, sources: Iterable[tuple[Source, Iterator[Portion]]], ordered: frozenset[str]
) -> Iterator[RoundRows]:
    yield from shard_round.begin()
    for source, portions in sources:
        is_posted = source.variant == POSTED
        place = FedPlace(source.route, None if is_posted else source.variant, source.epoch, source.changes)
        for batch in in_order(portions, is_ordered=not is_posted or source.stream in ordered):
            for part in batch.slices(_FED_ROWS):
                yield from shard_round.feed(source.stream, part, place)


@cache
def _load(exercises: Sequence[str]) -> None:
    """Load kernels once per process. Otherwise, a comparison would count loading as work of the first variant."""
    for exercise in exercises:
        run_exercise(exercise)
