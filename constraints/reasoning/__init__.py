"""The decision whether a pattern state can still complete, on bit masks, with a minimal reason if it cannot."""
