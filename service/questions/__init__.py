"""Questions to the shards: sent to tasks or appended to the log, and answered from the states of shards."""
