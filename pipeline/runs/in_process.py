"""The executor of a backtest in this process, which runs the tasks of a round one after the other.

The executor keeps the history in memory and is meant for small histories, for which starting Spark takes longer than
matching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from pipeline.errors import BacktestFailed
from pipeline.runs.deciding import decided
from pipeline.runs.history import Dealt, History, parts_of
from pipeline.runs.tasks import HANDED_ON, READING_SHARE, Progress, Reported, RoundTask
from shards import DeciderState, Decision, Variant
from streams import ForestallError

SMALL_BYTES = 32 << 20
"""Histories of fewer bytes are matched in this process, because starting Spark would cost more time than it saves."""

_PACKED = {".gz": 8, ".parquet": 8}  # assumed bytes of text per compressed byte


def is_small(histories: Mapping[str, History]) -> bool:
    """Check whether histories are so small that matching in this process is quicker than Spark."""
    files = [file for history in histories.values() for file in history.files]
    try:
        return sum(file.stat().st_size * _PACKED.get(file.suffix.lower(), 1) for file in files) < SMALL_BYTES
    except OSError:
        return True  # the reader reports what is wrong with the file


class InProcess:
    """Runs the tasks of a backtest in this process."""

    def __init__(self) -> None:
        self._handed_on: dict[int, list[Reported]] = {}  # by number of the round

    def decisions(
        self, histories: Mapping[str, History], observing: Sequence[tuple[int, Variant]], progress: Progress
    ) -> Sequence[Decision | DeciderState]:
        """Return the decisions of variants, and the states of their deciders, computed one variant after the other."""
        outcomes: list[Decision | DeciderState] = []
        for numbered_variant in observing:
            outcomes += decided(histories, numbered_variant)
            progress(0.0)
        return outcomes

    def run(self, task: RoundTask, progress: Progress) -> Iterator[Reported]:
        """Run a round in this process, and yield the reports of its tasks. The same round may be run again."""
        earlier = [output for number in range(task.number) for output in self._handed_on[number]]
        self._handed_on[task.number] = []
        dealt = [
            *task.reader()(parts_of(task.histories, 1)),
            *(entry for output in earlier for entry in task.handed_to(output)),
        ]
        dealt.sort(key=itemgetter(0))
        progress(READING_SHARE)
        for shard, shard_entries in groupby(dealt, lambda entry: entry[0].shard):
            for reported in _matched(task, shard_entries):
                if reported[0] == HANDED_ON:
                    self._handed_on[task.number].append(reported)
                else:
                    yield reported
            progress(READING_SHARE + (1.0 - READING_SHARE) * (shard + 1) / task.options.shards)

    def close(self) -> None:
        """Forget the derived events of earlier rounds."""
        self._handed_on.clear()


def _matched(task: RoundTask, dealt: Iterator[Dealt]) -> list[Reported]:
    try:
        return list(task.matched(dealt))
    except ForestallError:
        raise
    # house: allow broad-except: whatever it is, the backtest failed, and its reason is shown, as of a task of Spark
    except Exception as error:
        raise BacktestFailed(f"the backtest failed: {type(error).__name__}: {error}") from error
