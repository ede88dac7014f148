"""Aggregates as a kind of operator, together with the inputs that send all events of a group to one shard."""

from shards.kinds.aggregates.kind import AggregateInputKind, AggregateKind
