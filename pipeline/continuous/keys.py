"""The Redis keys of the continuous runtime."""

from __future__ import annotations

MEMBERS_KEY = "forestall:tasks:members"
"""Living tasks, by the time of their last beat: milliseconds of the server's clock."""

WAKE_KEY = "forestall:tasks:wake"
"""A stream of one entry, replaced when tasks should renew their leases at once because shards or members changed."""

LOADED_KEY = "forestall:tasks:loaded"
"""By shard, the epoch under which its owner has loaded the state."""

FAILURE_KEY = "forestall:tasks:failure"
"""The error that ended a task of the job, in words."""

RANGE_KEY = "forestall:log:indexing"
"""The number of the indexer's latest batch, with the range of each shard in it."""


def blocks_key(shard: int) -> str:
    """Return the Redis key of a shard's blocks that are not indexed yet. A block's id is the step's last position."""
    return f"forestall:log:{shard}:blocks"
