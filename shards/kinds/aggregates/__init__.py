"""Aggregates as a kind of operator, and the operators that bring the events of their groups together."""

from shards.kinds.aggregates.kind import AggregateInputKind, AggregateKind
