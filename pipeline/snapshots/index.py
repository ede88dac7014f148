"""The index of snapshots: kept next to the log, so that trimming the log knows what to leave."""

from __future__ import annotations

from typing import cast

import redis

from streams import position_order

_KEY = "forestall:snapshots:{shard}"


class SnapshotIndex:
    """Positions of the snapshots of every shard; each generation of the log's layout has its own.

    A snapshot is entered after it is written, and removed from the index before it is deleted.
    """

    def __init__(self, server: redis.Redis, generation: int = 0) -> None:
        self._server = server
        self._generation = generation

    def enter(self, shard: int, position: str, size: int, place: str = "") -> None:
        """Enter a snapshot of ``size`` bytes with its place, as the option ``snapshots`` names places."""
        self._server.hset(self._key(shard), position, f"{size} {place}".rstrip())

    def place(self, shard: int, position: str) -> str:
        """Where a snapshot was written; empty if an earlier release wrote it."""
        found = cast("bytes | None", self._server.hget(self._key(shard), position))
        return "" if found is None else found.decode().partition(" ")[2]

    def remove(self, shard: int, position: str) -> None:
        """Remove an entry before its snapshot is deleted."""
        self._server.hdel(self._key(shard), position)

    def positions(self, shard: int) -> list[str]:
        """The positions of a shard's snapshots, oldest first."""
        found = cast("list[bytes]", self._server.hkeys(self._key(shard)))
        return sorted((position.decode() for position in found), key=position_order)

    def latest(self, shard: int, until: str) -> str | None:
        """The newest position at or before a limit."""
        limit = position_order(until)
        return max(
            (position for position in self.positions(shard) if position_order(position) <= limit),
            key=position_order,
            default=None,
        )

    def _key(self, shard: int) -> str:
        return _KEY.format(shard=place_of(self._generation, shard))


def place_of(generation: int, shard: int) -> str:
    """The part for a shard in the keys of snapshots."""
    return f"{generation}:{shard}" if generation else str(shard)
