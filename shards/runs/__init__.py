"""Runs over finite events in shards: the rounds of a run, one shard in a round, and the comparison of sets of rules."""
