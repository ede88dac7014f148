"""Stores of snapshots, which are bytes by shard and position: in files or in Redis, by the option ``snapshots``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import redis

from streams import replacing

IN_REDIS = "redis"
_KEY = "forestall:snapshot:{shard}:{position}"


class FolderSnapshots:
    """Snapshots as files ``<shard>/<position>.state``. A file is written as a whole or not at all.

    The folder is created on the first write. With ``is_durable``, files are synced to disk. Otherwise a crash of the
    machine may lose or damage files.
    """

    def __init__(self, folder: Path, *, is_durable: bool) -> None:
        self._folder = folder
        self._is_durable = is_durable

    def write(self, shard: int, position: str, *parts: bytes) -> None:
        path = self._path(shard, position)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, is_durable=self._is_durable) as file:
            file.writelines(parts)

    def read(self, shard: int, position: str) -> bytes | None:
        try:
            return self._path(shard, position).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, shard: int, position: str) -> bool:
        return self._path(shard, position).is_file()

    def remove(self, shard: int, position: str) -> None:
        self._path(shard, position).unlink(missing_ok=True)

    def positions(self, shard: int) -> list[str]:
        """Return the positions of a shard's files, in any order."""
        return [path.stem for path in (self._folder / str(shard)).glob("*.state")]

    def keep_only(self, shard: int, positions: tuple[str, ...]) -> None:
        """Remove all other files of a shard, including unfinished files of dead processes."""
        names = {f"{position}.state" for position in positions}
        for path in (self._folder / str(shard)).glob("*"):
            if path.name not in names:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _path(self, shard: int, position: str) -> Path:
        return self._folder / str(shard) / f"{position}.state"


class RedisSnapshots:
    """Snapshots as values in Redis, for clusters whose machines share no folder.

    Each snapshot has a key of its own. Redis limits a value, and so a state, to 512 MB. More shards make states
    smaller.
    """

    def __init__(self, server: redis.Redis, generation: int = 0) -> None:
        self._server = server
        self._generation = generation

    def write(self, shard: int, position: str, *parts: bytes) -> None:
        self._server.set(self._key(shard, position), b"".join(parts))

    def read(self, shard: int, position: str) -> bytes | None:
        return cast("bytes | None", self._server.get(self._key(shard, position)))

    def has(self, shard: int, position: str) -> bool:
        return bool(self._server.exists(self._key(shard, position)))

    def remove(self, shard: int, position: str) -> None:
        self._server.delete(self._key(shard, position))

    def _key(self, shard: int, position: str) -> str:
        return _KEY.format(shard=place_of(self._generation, shard), position=position)


class FormerlyInRedis(FolderSnapshots):
    """A folder of snapshots that has replaced Redis. Redis is read too, because it may have older snapshots."""

    def __init__(self, folder: Path, before: RedisSnapshots) -> None:
        super().__init__(folder, is_durable=True)
        self._before = before

    def read(self, shard: int, position: str) -> bytes | None:
        """Return the bytes of a snapshot from the store that has it, or None if neither has."""
        body = super().read(shard, position)
        return self._before.read(shard, position) if body is None else body

    def has(self, shard: int, position: str) -> bool:
        """Check whether a snapshot exists in either store."""
        return super().has(shard, position) or self._before.has(shard, position)

    def remove(self, shard: int, position: str) -> None:
        """Remove a snapshot from both stores."""
        super().remove(shard, position)
        self._before.remove(shard, position)


def open_snapshots(place: str, server: redis.Redis, generation: int = 0) -> FolderSnapshots | RedisSnapshots:
    """Open the store that the option ``snapshots`` names.

    The option is ``redis``, or a folder that every worker reaches by the same path. Each generation of the log's layout
    has its own snapshots.
    """
    if place == IN_REDIS:
        return RedisSnapshots(server, generation)
    folder = Path(place) / f"generation-{generation}" if generation else Path(place)
    return FormerlyInRedis(folder, RedisSnapshots(server, generation))


def place_of(generation: int, shard: int) -> str:
    """Return the part of a Redis key that names the generation and the shard of a snapshot."""
    return f"{generation}:{shard}" if generation else str(shard)
