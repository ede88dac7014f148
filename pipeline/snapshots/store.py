"""What a place for snapshots does, and how an option names one."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import redis

from pipeline.snapshots.folder import FolderSnapshots
from pipeline.snapshots.in_redis import RedisSnapshots

IN_REDIS = "redis"


class SnapshotStore(Protocol):
    """Bytes by shard and position; what was written is there after a crash of machine or process."""

    def write(self, shard: int, position: str, body: bytes) -> None:
        """Keep the bytes; writing the same again changes nothing."""
        ...

    def read(self, shard: int, position: str) -> bytes | None:
        """The bytes, if they are there."""
        ...

    def remove(self, shard: int, position: str) -> None:
        """Forget the bytes, if they are there."""
        ...


def open_snapshots(place: str, server: redis.Redis, generation: int = 0) -> SnapshotStore:
    """The store that an option names: ``redis``, or a folder that every worker reaches under the same path.

    Args:
        place: The option.
        server: Where the log is.
        generation: Of its layout; each has snapshots of its own.
    """
    if place == IN_REDIS:
        return RedisSnapshots(server, generation)
    folder = Path(place) / f"generation-{generation}" if generation else Path(place)
    return FolderSnapshots(folder, is_durable=True)
