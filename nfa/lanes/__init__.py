"""Per-key matchers (lanes). A lane has the patterns of one set of keys, compiled together, and one table of traces."""
