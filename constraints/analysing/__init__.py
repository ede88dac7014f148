"""Static analysis before the first event: patterns that cannot match, redundant atoms, names for the monitor."""
