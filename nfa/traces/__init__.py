"""The traces of a shard: open traces, their monitor states, and their ends."""
