"""Guards, which know the partial matches that can still complete: protocol, tables of answers, bit tables."""
