"""Questions to the shards: they go through the log and are answered from the shards' states."""
