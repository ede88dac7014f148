"""Guards, which know which partial matches can still complete: protocol, tables of answers, bit tables."""
