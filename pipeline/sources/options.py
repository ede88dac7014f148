"""Options of the event-log source, and how the source classes receive their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pipeline.errors import SourceOptionError
from streams import MAX_SHARDS

_Source = TypeVar("_Source")
_FLOORS = {
    "shards": 1,
    "max_entries": 1,
    "max_bytes": 1,
    "retain_entries": 0,
    "tasks": 1,
    "wait_ms": 0,
    "retries": 0,
    "snapshot_bytes": 1,
    "generation": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogOptions:
    """The options for reading the log, and for the place of the saved states.

    Attributes:
        shards: Number of shards. It is fixed for the life of a checkpoint.
        snapshots: Place of snapshots: ``redis``, or a folder that every worker reaches by this path.
        max_entries: The most entries of one shard in one micro-batch.
        max_bytes: The most bytes of one shard in one micro-batch. A single entry may have more.
        retain_entries: How many entries of a shard before the committed offset are retained for replays.
        tasks: The most Spark tasks that read shards with new entries.
        wait_ms: How long planning waits for entries before it plans an empty micro-batch.
        retries: Attempts after a lost connection, with growing pauses of at most 2 seconds.
        snapshot_bytes: The least bytes of entries that a shard matches between two snapshots. If the shard's state is
            larger, its size is the least.
        generation: Generation of the log's layout: 0 for the original shards, otherwise the number of shards after the
        last resharding. Each generation has its own snapshots.
        results: Redis hash in which the sink notes up to which entry results are written, under ``position:`` and the
        shard. Empty if the sink notes nothing.
    """

    redis_url: str
    shards: int
    snapshots: str = "redis"
    max_entries: int = 64
    max_bytes: int = 4_000_000
    retain_entries: int = 10_000
    tasks: int = 2
    wait_ms: int = 200
    retries: int = 20
    snapshot_bytes: int = 4_000_000
    generation: int = 0
    results: str = ""

    def __post_init__(self) -> None:
        if not self.redis_url:
            raise SourceOptionError(
                "option redis_url is empty: name the log's server, such as redis://127.0.0.1:6379/0"
            )
        if not self.snapshots:
            raise SourceOptionError("option snapshots is empty: write redis, or the path of a folder")
        for name, floor in _FLOORS.items():
            if getattr(self, name) < floor:
                raise SourceOptionError(f"option {name} is {getattr(self, name)}: at least {floor}", option=name)
        if self.shards > MAX_SHARDS:
            raise SourceOptionError(f"option shards is {self.shards}: at most {MAX_SHARDS}", option="shards")


def with_options(source: type[_Source], options: Any) -> type[_Source]:
    """Return a source class with the attribute ``source_options``. Spark sends the class to its processes."""
    return type(source.__name__, (source,), {"source_options": options})
