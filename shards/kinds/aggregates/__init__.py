"""Aggregates as a kind of operator, with the operators that move all events of a group to one shard."""

from shards.kinds.aggregates.kind import AggregateInputKind, AggregateKind
