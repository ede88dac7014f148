"""Measures of a shard's work in a micro-batch: one of the shard's rows; the driver sums them up."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

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


def stats_row(
    state: ShardState, after: str, entries: Sequence[StoredEntry], spent: Spent, state_bytes: int
) -> RowBlock:
    """The row of the kind ``stats``; it describes one run of the micro-batch and is never stored.

    ``state`` is the one after the entries, ``after`` the position after which their range began.
    """
    body = {
        "shard": state.shard,
        "after": after,
        "process": [socket.gethostname(), os.getpid()],
        "entries": len(entries),
        "bytes": sum(len(entry.body) for entry in entries),
        **asdict(spent),
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
