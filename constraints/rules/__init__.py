"""DECLARE templates that are neither order nor Horn constraints: small automata, and what all of them still allow."""
