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

    def has(self, shard: int, position: str) -> bool:
        """Whether the bytes are there."""
        ...

    def remove(self, shard: int, position: str) -> None:
        """Forget the bytes, if they are there."""
        ...


class FormerlyInRedis(FolderSnapshots):
    """A folder that replaced Redis: snapshots from that time are still read there.

    Args:
        folder: Where snapshots are written.
        before: Those in Redis.
    """

    def __init__(self, folder: Path, before: RedisSnapshots) -> None:
        super().__init__(folder, is_durable=True)
        self._before = before

    def read(self, shard: int, position: str) -> bytes | None:
        """The bytes, if they are in either place."""
        body = super().read(shard, position)
        return self._before.read(shard, position) if body is None else body

    def has(self, shard: int, position: str) -> bool:
        """Whether the bytes are in either place."""
        return super().has(shard, position) or self._before.has(shard, position)

    def remove(self, shard: int, position: str) -> None:
        """Forget the bytes in both places."""
        super().remove(shard, position)
        self._before.remove(shard, position)


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
    return FormerlyInRedis(folder, RedisSnapshots(server, generation))
