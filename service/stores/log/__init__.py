"""The event log in Redis, with its layout, control records, derived events, feeds, dead letters and counters."""
