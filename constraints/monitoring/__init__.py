"""The state of a trace under its constraints: as numbered states, or as bit tables where those would be too many."""
