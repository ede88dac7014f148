"""Static analysis before the first event: impossible patterns, redundant atoms, choice of the monitor's names."""
