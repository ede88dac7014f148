"""Events/s of the library by the number of patterns, traces, steps, constraints and cores, and by the window length."""
