"""Runs over past events: a history in, rounds of shards, results out, in Spark or in this process."""
