"""Saved states of shards: their storage and an index by shard and position."""

from pipeline.snapshots.index import SnapshotIndex, latest, missing_snapshot, missing_snapshots
from pipeline.snapshots.stores import FolderSnapshots, RedisSnapshots, open_snapshots
