"""Errors for snapshots that are missing at their place."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from pipeline.errors import LogDamaged
from pipeline.snapshots.index import SnapshotIndex
from pipeline.snapshots.store import open_snapshots


def missing_snapshots(server: redis.Redis, place: str, shards: int, generation: int = 0) -> Iterator[LogDamaged]:
    """An error for each shard whose newest snapshot is missing at a place, as the option ``snapshots`` names places."""
    index, store = SnapshotIndex(server, generation), open_snapshots(place, server, generation)
    for shard in range(shards):
        positions = index.positions(shard)
        if positions and not store.has(shard, positions[-1]):
            yield missing_snapshot(index, place, shard, positions[-1])


def missing_snapshot(index: SnapshotIndex, place: str, shard: int, position: str) -> LogDamaged:
    """The error for a missing snapshot; the message names the place where it was written."""
    before = index.place(shard, position)
    if before and before != place:
        found = (
            f"was written to {before}, and snapshots are read from {place} now; set FORESTALL_SNAPSHOTS={before} "
            "(where it is not set, it follows FORESTALL_SPARK_MASTER), or copy that folder to one that every "
            "machine reaches and name that; nothing is lost meanwhile"
        )
    else:
        found = (
            f"is not in {place}, and the log before it may have been trimmed; if FORESTALL_SNAPSHOTS or "
            "FORESTALL_SPARK_MASTER was changed, set it back; else put the snapshots back; if they are lost, begin "
            "with an empty Redis and data folder"
        )
    return LogDamaged(f"the snapshot of shard {shard} at {position} {found}", shard=shard, position=position)
