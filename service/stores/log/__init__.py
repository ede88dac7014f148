"""The event log in Redis and its records: shards, routes, marks of feeds, dead letters, counters."""
