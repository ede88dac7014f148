"""Measures of a shard's work in a micro-batch: one of the shard's rows; the driver sums them up."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shards import COUNTED, STATS, FoundRows, RowBlock, ShardState, StoredEntry, row_id

_SHOWN = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time spent on a shard, in seconds: getting the state, matching the entries, saving the state."""

    load_s: float
    match_s: float
    keep_s: float

    def plus(self, other: Spent) -> Spent:
        """The sum of both."""
        return Spent(
            load_s=self.load_s + other.load_s,
            match_s=self.match_s + other.match_s,
            keep_s=self.keep_s + other.keep_s,
        )


_NO_TIME = Spent(load_s=0.0, match_s=0.0, keep_s=0.0)


@dataclass(slots=True)
class Work:
    """What a shard has matched from a position on: entries, their bytes, and the time spent."""

    after: str
    entries: int = 0
    bytes: int = 0
    spent: Spent = _NO_TIME

    def add(self, entries: Sequence[StoredEntry], spent: Spent) -> None:
        """Add the entries of a step."""
        self.entries += len(entries)
        self.bytes += sum(len(entry.body) for entry in entries)
        self.spent = self.spent.plus(spent)


def stats_row(state: ShardState, work: Work, state_bytes: int) -> RowBlock:
    """The row of the kind ``stats``; it describes one attempt at some steps and is never stored.

    ``state`` is the state after these steps.
    """
    body = {
        "shard": state.shard,
        "after": work.after,
        "process": [socket.gethostname(), os.getpid()],
        "entries": work.entries,
        "bytes": work.bytes,
        "load_s": work.spent.load_s,
        "match_s": work.spent.match_s,
        "keep_s": work.spent.keep_s,
        "state_bytes": state_bytes,
        "promises": state.promises(),
        "observed": [one.to_json() for one in state.observations()],
        "streams": {label: _shown(measured) for label, measured in state.measures().items()},
    }
    found = FoundRows.of(STATS, [(row_id(STATS, state.shard, state.position), body)])
    return RowBlock(found=found, stream="", position=state.position, shard=state.shard)


def _shown(measured: Mapping[str, int | None]) -> dict[str, int | None]:
    of_operators = {name: number for name, number in measured.items() if name.startswith(COUNTED)}
    of_auto = {name: measured[name] for name in _OF_AUTO if name in measured}
    return {**{name: measured[name] for name in _SHOWN}, **of_auto, **of_operators}
