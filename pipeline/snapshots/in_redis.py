"""Snapshots as values in Redis, for clusters whose machines share no folder."""

from __future__ import annotations

from typing import cast

import redis

_KEY = "forestall:snapshot:{shard}:{position}"


class RedisSnapshots:
    """One key per snapshot; a state of more than 512 MB does not fit, and more shards make states smaller."""

    def __init__(self, server: redis.Redis) -> None:
        self._server = server

    def write(self, shard: int, position: str, body: bytes) -> None:
        """Keep the bytes; writing the same again changes nothing."""
        self._server.set(_KEY.format(shard=shard, position=position), body)

    def read(self, shard: int, position: str) -> bytes | None:
        """The bytes, if they are there."""
        return cast("bytes | None", self._server.get(_KEY.format(shard=shard, position=position)))

    def remove(self, shard: int, position: str) -> None:
        """Forget the bytes, if they are there."""
        self._server.delete(_KEY.format(shard=shard, position=position))
