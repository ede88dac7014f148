"""Questions to the shards, sent to tasks or appended to the log. Shards answer from their states."""
