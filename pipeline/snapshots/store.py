"""The protocol of snapshot stores, and their choice by an option."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import redis

from pipeline.snapshots.folder import FolderSnapshots
from pipeline.snapshots.in_redis import RedisSnapshots

IN_REDIS = "redis"


class SnapshotStore(Protocol):
    """Bytes by shard and position; they survive a crash of the machine or process."""

    def write(self, shard: int, position: str, body: bytes) -> None:
        """Store the bytes; writing the same again changes nothing."""
        ...

    def read(self, shard: int, position: str) -> bytes | None:
        """The bytes, if they exist."""
        ...

    def has(self, shard: int, position: str) -> bool:
        """Whether the bytes exist."""
        ...

    def remove(self, shard: int, position: str) -> None:
        """Remove the bytes, if they exist."""
        ...


class FormerlyInRedis(FolderSnapshots):
    """A folder for new snapshots that replaced Redis; snapshots written before are still read from Redis."""

    def __init__(self, folder: Path, before: RedisSnapshots) -> None:
        super().__init__(folder, is_durable=True)
        self._before = before

    def read(self, shard: int, position: str) -> bytes | None:
        """The bytes, if they exist in either store."""
        body = super().read(shard, position)
        return self._before.read(shard, position) if body is None else body

    def has(self, shard: int, position: str) -> bool:
        """Whether the bytes exist in either store."""
        return super().has(shard, position) or self._before.has(shard, position)

    def remove(self, shard: int, position: str) -> None:
        """Remove the bytes from both stores."""
        super().remove(shard, position)
        self._before.remove(shard, position)


def open_snapshots(place: str, server: redis.Redis, generation: int = 0) -> SnapshotStore:
    """The store that an option names: ``redis``, or a folder that every worker reaches under the same path.

    Each generation of the log's layout has its own snapshots.
    """
    if place == IN_REDIS:
        return RedisSnapshots(server, generation)
    folder = Path(place) / f"generation-{generation}" if generation else Path(place)
    return FormerlyInRedis(folder, RedisSnapshots(server, generation))
