"""The event log in Redis and the records beside it: shards, routes, marks of feeds, dead letters, counters."""
