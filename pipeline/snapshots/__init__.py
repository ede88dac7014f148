"""Saved states of shards and their storage, by shard and position."""

from pipeline.snapshots.folder import FolderSnapshots
from pipeline.snapshots.in_redis import RedisSnapshots
from pipeline.snapshots.index import SnapshotIndex
from pipeline.snapshots.missing import missing_snapshot, missing_snapshots
from pipeline.snapshots.store import open_snapshots
