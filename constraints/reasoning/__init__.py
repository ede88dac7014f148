"""Whether a pattern state can still complete, by the definition and on bit masks, and a minimal reason where not."""
