"""The event log in Redis and what is kept with it: shards, routes, marks of feeds, dead letters, counters."""
