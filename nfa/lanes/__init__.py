"""Lanes (per-key matchers): the patterns of one correlation key, compiled together, over one table of traces."""
