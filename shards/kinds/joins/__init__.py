"""Joins as a kind of operator, and the operators that merge the events of their inputs."""

from shards.kinds.joins.kind import JoinInputKind, JoinKind, merged_stream
from shards.kinds.joins.result_kinds import JOIN_SUSPENSION
from shards.kinds.joins.sources import finishes_range

__all__ = ["JOIN_SUSPENSION", "JoinInputKind", "JoinKind", "finishes_range", "merged_stream"]
