"""The index of snapshots, and errors about missing ones.

The index is stored beside the log, so that the entries that the snapshots need are retained when the log is trimmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import redis

from pipeline.errors import LogDamaged
from pipeline.snapshots.stores import open_snapshots, place_of
from streams import position_order

_KEY = "forestall:snapshots:{shard}"


class SnapshotIndex:
    """The index of all snapshots, by shard and position. Each generation of the log's layout has its own index.

    An entry is made after its snapshot is written, and removed before the snapshot is deleted.
    """

    def __init__(self, server: redis.Redis, generation: int = 0) -> None:
        self._server = server
        self._generation = generation

    def enter(self, shard: int, position: str, size: int, place: str = "") -> None:
        """Enter a snapshot of ``size`` bytes. ``place`` says where it is, in the form of the option ``snapshots``."""
        self._server.hset(self._key(shard), position, f"{size} {place}".rstrip())

    def place(self, shard: int, position: str) -> str:
        """Return the place where a snapshot was written. It is empty for snapshots of earlier releases."""
        entry = cast("bytes | None", self._server.hget(self._key(shard), position))
        return "" if entry is None else entry.decode().partition(" ")[2]

    def remove(self, shard: int, position: str) -> None:
        """Remove the entry of a snapshot that is about to be deleted."""
        self._server.hdel(self._key(shard), position)

    def positions(self, shard: int) -> list[str]:
        """Return the positions of a shard's snapshots, oldest first."""
        fields = cast("list[bytes]", self._server.hkeys(self._key(shard)))
        return sorted((position.decode() for position in fields), key=position_order)

    def latest(self, shard: int, until: str) -> str | None:
        """Return the position of a shard's newest snapshot at or before ``until``, or None."""
        return latest(self.positions(shard), until)

    def _key(self, shard: int) -> str:
        return _KEY.format(shard=place_of(self._generation, shard))


def latest(positions: Iterable[str], until: str) -> str | None:
    """Return the newest of the given positions that is at or before ``until``, or None."""
    limit = position_order(until)
    return max(
        (position for position in positions if position_order(position) <= limit), key=position_order, default=None
    )


def missing_snapshots(server: redis.Redis, place: str, shards: int, generation: int = 0) -> Iterator[LogDamaged]:
    """Yield an error for each shard whose newest snapshot is missing.

    Snapshots are looked for at ``place``, which has the form of the option ``snapshots``.
    """
    index, store = SnapshotIndex(server, generation), open_snapshots(place, server, generation)
    for shard in range(shards):
        positions = index.positions(shard)
        if positions and not store.has(shard, positions[-1]):
            yield missing_snapshot(index, place, shard, positions[-1])


def missing_snapshot(index: SnapshotIndex, place: str, shard: int, position: str) -> LogDamaged:
    """Return the error for a missing snapshot. Its message names the place where the snapshot was written."""
    origin = index.place(shard, position)
    if origin and origin != place:
        reason = (
            f"was written to {origin}, and snapshots are read from {place} now; set FORESTALL_SNAPSHOTS={origin} "
            "(where it is not set, it follows FORESTALL_SPARK_MASTER), or copy that folder to one that every "
            "machine reaches and name that; nothing is lost meanwhile"
        )
    else:
        reason = (
            f"is not in {place}, and the log before it may have been trimmed; if FORESTALL_SNAPSHOTS or "
            "FORESTALL_SPARK_MASTER was changed, set it back; else put the snapshots back; if they are lost, begin "
            "with an empty Redis and data folder"
        )
    return LogDamaged(f"the snapshot of shard {shard} at {position} {reason}", shard=shard, position=position)
