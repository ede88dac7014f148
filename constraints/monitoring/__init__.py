"""The state of a trace under its constraints: a numbered state, or bit tables if there would be too many states."""
