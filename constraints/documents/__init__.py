"""Constraint sets as documents: read with all problems reported, and written in one canonical form."""
