"""Guards decide which partial matches can still complete. The matcher stores their answers in tables."""
