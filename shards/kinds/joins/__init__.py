"""Joins as a kind of operator, together with the inputs that merge the events of several streams."""

from shards.kinds.joins.kind import JoinInputKind, JoinKind, merged_stream
