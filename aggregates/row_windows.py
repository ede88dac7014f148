"""Aggregates whose groups are rows of a table, each with a sliding window of its own length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.columns import EventColumns
from aggregates.document import AggregateBody
from aggregates.emitting import Emission, in_order
from aggregates.running import MOST_ROWS_OF_AN_EVENT, AggregateRun
from aggregates.scalars import Scalar
from streams import NEVER_US

_FEW = 16


class RowWindows:
    """Runs an aggregate whose groups are rows of a table with windows of their own length.

    There is one ``AggregateRun`` for each window length. Within a run, events therefore leave in the order of time. All
    runs have the same time, whenever they began.

    Args:
        begin: Creates the run of an aggregate.
    """

    is_revocable = False  # no event of its stream is ever retracted

    def __init__(self, body: AggregateBody, begin: Callable[[AggregateBody], AggregateRun]) -> None:
        self.body, self.is_suspended = body, False
        self._new = begin
        self._runs: dict[int, AggregateRun] = {}
        self._now_us, self._late = NEVER_US, 0  # _late: count of late events in forgotten runs
        self._sizes: dict[Scalar, int] = {}

    def process(self, events: EventColumns) -> list[Emission]:
        """Process events, then advance time to the newest event. Return the derived events.

        If all runs together hold more than ``most_rows`` rows after an event, the aggregate is suspended at this event.
        """
        emissions, begin = list[Emission](), 0
        while not self.is_suspended and (begin < len(events) or not begin):
            end = begin + max(1, self._room() // MOST_ROWS_OF_AN_EVENT)
            emissions += self._processed(_slice(events, begin, end), begin)
            begin = end
        return in_order(emissions)

    def _room(self) -> int:
        return self.body.most_rows - sum(run.rows + run.waiting for run in self._runs.values())

    def _processed(self, events: EventColumns, begin: int) -> list[Emission]:
        sizes = np.array([self._size_of(emission) for emission in events.by[-1]], np.int64)
        for size in np.unique(sizes).tolist():
            self._run_of(size)
        self._now_us = max(self._now_us, events.newest_us)
        emissions = list[Emission]()
        for size, run in self._runs.items():
            rows = np.flatnonzero(sizes == size)
            for emission in run.process(events.at(rows)):
                place = int(rows[emission.place - 1]) + 1 + begin if emission.place else 0
                emissions.append(emission._replace(place=place))
        runs = self._runs.values()
        if any(run.is_suspended for run in runs) or sum(run.rows for run in runs) > self.body.most_rows:
            self._runs, self.is_suspended = {}, True
        self._forget_idle()
        return emissions

    def advance_time(self, now_us: int) -> list[Emission]:
        """Advance time to ``now_us``, and return the derived events.

        The caller ensures that no earlier event follows.
        """
        self._now_us = max(self._now_us, now_us)
        emissions = in_order(chain.from_iterable([run.advance_time(now_us) for run in self._runs.values()]))
        self._forget_idle()
        return emissions

    def end_key(self, key_hash: int, time_us: int) -> list[Emission]:
        """Return an empty list: the end of a transaction has no effect on sliding windows."""
        return []

    def finish(self) -> list[Emission]:
        """End a finite input. Return the derived events."""
        return in_order(chain.from_iterable([run.finish() for run in self._runs.values()]))

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashes of the correlation keys of all groups."""
        return np.concatenate([np.zeros(0, np.uint64), *(run.keys() for run in self._runs.values())])

    def drop(self, is_gone: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget the groups of some keys. ``is_gone`` is a mask over ``keys``."""
        for run in self._runs.values():
            run.drop(is_gone, keys)

    def measures(self) -> dict[str, int]:
        """Return the counts of ``AggregateRun.measures``, added up over all runs."""
        totals = {"groups": 0, "held": 0, "late": self._late}
        for run in self._runs.values():
            totals = {name: number + run.measures()[name] for name, number in totals.items()}
        return totals

    def clear_counts(self) -> None:
        """Reset the number of events that arrived too late to 0."""
        self._late = 0
        for run in self._runs.values():
            run.clear_counts()

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the states of all runs to save: a head of plain JSON, and columns by name."""
        saved = {size: run.dump() for size, run in self._runs.items()}
        sections = {f"{size}/{name}": part for size, (_, some) in saved.items() for name, part in some.items()}
        runs = [[size, head] for size, (head, _) in saved.items()]
        own = {"suspended": self.is_suspended, "now_us": self._now_us, "late": self._late}
        return {**own, "runs": runs}, sections

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        self.is_suspended, self._now_us, self._late = head["suspended"], head["now_us"], head["late"]
        for size, saved_run in head["runs"]:
            prefix = f"{size}/"
            some = {name.removeprefix(prefix): part for name, part in sections.items() if name.startswith(prefix)}
            self._run_of(size).load(saved_run, some)

    def _run_of(self, size: int) -> AggregateRun:
        if size not in self._runs:
            run = self._new(replace(self.body, window=replace(self.body.window, size=size, column="")))
            run.advance_time(self._now_us)
            self._runs[size] = run
        return self._runs[size]

    def _forget_idle(self) -> None:
        """Forget runs without groups once there are many, because window lengths in the table may change."""
        if len(self._runs) > _FEW:
            for size in [size for size, run in self._runs.items() if run.is_idle]:
                self._late += self._runs.pop(size).measures()["late"]

    def _size_of(self, duration: Scalar) -> int:
        if duration not in self._sizes:
            self._sizes[duration] = self.body.window.of_row(duration).size
        return self._sizes[duration]


def _slice(events: EventColumns, begin: int, end: int) -> EventColumns:
    """Return the events from ``begin`` up to ``end`` (exclusive) as a batch.

    The newest time of the batch is the clock of its last event. The last slice has the newest time of ``events``.
    """
    if end >= len(events):
        return events if not begin else events.at(np.arange(begin, len(events)))
    return replace(events.at(np.arange(begin, end)), newest_us=int(events.clocks_us[end - 1]))
