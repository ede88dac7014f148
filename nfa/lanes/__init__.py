"""The patterns of one correlation key, compiled together: both engines over one table of traces, and their state."""
