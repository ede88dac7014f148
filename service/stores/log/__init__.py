"""The event log in Redis: its layout, control records, the progress of feeds, dead letters, and counters."""
