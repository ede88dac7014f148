"""Guards decide which partial matches can still complete: the protocol, tables of answers, and bit tables."""
