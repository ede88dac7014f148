"""DECLARE templates that are neither order nor Horn constraints: small automata, and their joint decision."""
