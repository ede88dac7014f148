"""How events/s of the library engine change with what there is of patterns, traces, windows, steps, rules and cores."""
