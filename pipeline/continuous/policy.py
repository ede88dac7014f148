"""Policies: which shard a task advances next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from shards import StoredEntry
from streams import position_order


class Policy(Protocol):
    """Chooses among shards with entries; any order gives the same results."""

    def choose(self, waiting: Mapping[int, Sequence[StoredEntry]]) -> int:
        """The shard to advance; ``waiting`` has the next entries of each shard, and is not empty."""
        ...


class OldestFirst:
    """The shard whose first entry is the oldest: least latency."""

    def choose(self, waiting: Mapping[int, Sequence[StoredEntry]]) -> int:
        return min(waiting, key=lambda shard: (position_order(waiting[shard][0].position), shard))
