"""What knows which partial matches can still complete: the protocol, its answers as tables, bit tables."""
