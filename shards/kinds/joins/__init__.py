"""Joins as a kind of operator, with the operators that merge the events of their inputs."""

from shards.kinds.joins.kind import JoinInputKind, JoinKind, merged_stream
