"""DECLARE templates that are neither order nor Horn constraints, as small automata, and their joint decision."""
