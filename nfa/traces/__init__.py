"""The traces of a shard: which are open, in which monitor state, and when they end."""
