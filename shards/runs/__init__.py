"""Runs over finite events in shards: rounds of a run, one shard in a round, and comparisons of sets of rules."""
