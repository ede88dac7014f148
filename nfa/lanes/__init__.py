"""Per-key matchers (lanes): the patterns of one set of keys, compiled together, over one table of traces."""
