"""The state of a trace under its constraints: as numbered states, or as bit tables if those would be too many."""
