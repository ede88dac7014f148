"""Joins as a kind of operator, and what merges the events of their inputs."""

from shards.kinds.joins.kind import JoinInputKind, JoinKind, merged_stream

__all__ = ["JoinInputKind", "JoinKind", "merged_stream"]
