"""Questions to the shards: appended to the log, and answered from the shards' states."""
