"""Measures of a shard's work in a micro-batch, sent as one of the shard's rows and summed up by the driver."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from shards import COUNTED, STATS, Cost, Metering, ResultRows, RowBlock, ShardState, StoredEntry, row_id

_REPORTED = (
    "events",
    "open_traces",
    "held",
    "late_dropped",
    "late_dead_lettered",
    "late_processed",
    "waiting",
    "watermark_us",
)
_OF_AUTO = ("lateness_us",)
_COSTS_S = 1.0
_MOST_OPERATORS = 200  # most operators of one host in a report


@dataclass(slots=True)
class Work:
    """The work of a shard since a position: numbers of entries and bytes, and seconds.

    The seconds have three parts: getting the state, matching the entries, and saving the state.
    """

    after: str
    entries: int = 0
    bytes: int = 0
    load_s: float = 0.0
    match_s: float = 0.0
    keep_s: float = 0.0

    def add(self, entries: Sequence[StoredEntry], times_s: Sequence[float]) -> None:
        """Add the entries of a step to the work.

        ``times_s`` are four times: when the step began, when it had the state, when it had matched, and when it had
        saved.
        """
        self.entries += len(entries)
        self.bytes += sum(len(entry.body) for entry in entries)
        start_s, loaded_s, matched_s, saved_s = times_s
        self.load_s += loaded_s - start_s
        self.match_s += matched_s - loaded_s
        self.keep_s += saved_s - matched_s


class Costs:
    """Measures the cost of each host of a shard's state.

    Each report halves the costs, so that recent costs count more.
    """

    def __init__(self, state: ShardState) -> None:
        state.meter(Metering(time.thread_time_ns))
        self._state = state
        self._reported = time.monotonic() - _COSTS_S
        self._seconds = 0.0

    def due(self) -> dict[str, Any] | None:
        """Return the costs and the seconds in which they arose, as plain JSON.

        Return None if the last report is less than a second old.
        """
        now = time.monotonic()
        if now < self._reported + _COSTS_S:
            return None
        self._seconds, self._reported = self._seconds + now - self._reported, now
        costs = self._state.costs
        report = {"at_us": time.time_ns() // 1_000, "seconds": self._seconds, "streams": _costs(costs)}
        self._seconds /= 2
        for hosts in costs.values():
            for cost, _ in hosts.values():
                cost.halve()
        return report


def _costs(costs: Mapping[str, Mapping[str, tuple[Cost, Collection[str]]]]) -> dict[str, Any]:
    return {
        label: {
            kind: {
                "rows_in": round(cost.rows_in, 1),
                "cpu_ns": round(cost.cpu_ns),
                "rows_out": round(sum(cost.rows_out.values()), 1),
                "operators": {name: round(cost.rows_out.get(name, 0.0), 1) for name in islice(names, _MOST_OPERATORS)},
            }
            for kind, (cost, names) in hosts.items()
        }
        for label, hosts in costs.items()
    }


def stats_row(state: ShardState, work: Work, state_bytes: int, costs: Mapping[str, Any] | None = None) -> RowBlock:
    """Return the row of the kind ``stats`` about some steps. The row describes one attempt and is never stored.

    ``state`` is the state after these steps, ``costs`` is the result of ``Costs.due``.
    """
    body: dict[str, Any] = {
        "shard": state.shard,
        "after": work.after,
        "process": [socket.gethostname(), os.getpid()],
        "entries": work.entries,
        "bytes": work.bytes,
        "load_s": work.load_s,
        "match_s": work.match_s,
        "keep_s": work.keep_s,
        "state_bytes": state_bytes,
        "promises": state.promises(),
        "observed": [observation.to_json() for observation in state.observations()],
        "streams": {label: _stream_measures(measured) for label, measured in state.measures().items()},
    }
    if costs is not None:
        body["costs"] = costs
    stats_rows = ResultRows.of(STATS, [(row_id(STATS, state.shard, state.position), body)])
    return RowBlock(found=stats_rows, stream="", position=state.position, shard=state.shard)


def _stream_measures(measured: Mapping[str, int | None]) -> dict[str, int | None]:
    of_operators = {name: number for name, number in measured.items() if name.startswith(COUNTED)}
    of_auto = {name: measured[name] for name in _OF_AUTO if name in measured}
    return {**{name: measured[name] for name in _REPORTED}, **of_auto, **of_operators}
