"""Runs over past events: they read a history and match it in rounds of shards, in Spark or in this process."""
