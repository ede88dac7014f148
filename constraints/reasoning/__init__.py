"""Decides whether a pattern state can still complete, by definition and on bit masks, with a minimal reason if not."""
