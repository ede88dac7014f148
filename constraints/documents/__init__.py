"""Constraint sets as documents: read with every problem named, and written in one form."""
