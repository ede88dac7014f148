"""Snapshots as values in Redis, for clusters whose machines share no folder."""

from __future__ import annotations

from typing import cast

import redis

from pipeline.snapshots.index import place_of

_KEY = "forestall:snapshot:{shard}:{position}"


class RedisSnapshots:
    """One Redis key per snapshot; its limit is 512 MB per state, and more shards make states smaller."""

    def __init__(self, server: redis.Redis, generation: int = 0) -> None:
        self._server = server
        self._generation = generation

    def write(self, shard: int, position: str, body: bytes) -> None:
        self._server.set(self._key(shard, position), body)

    def read(self, shard: int, position: str) -> bytes | None:
        return cast("bytes | None", self._server.get(self._key(shard, position)))

    def has(self, shard: int, position: str) -> bool:
        return bool(self._server.exists(self._key(shard, position)))

    def remove(self, shard: int, position: str) -> None:
        self._server.delete(self._key(shard, position))

    def _key(self, shard: int, position: str) -> str:
        return _KEY.format(shard=place_of(self._generation, shard), position=position)
