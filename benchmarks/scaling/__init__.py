"""Events/s of the library engine by number of patterns, traces, steps, constraints and cores, and length of window."""
