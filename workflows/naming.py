"""Normal form of names of tasks and event types, for comparison."""

from __future__ import annotations


def normalised(text: str) -> str:
    """A name with white space trimmed and runs of it replaced by one space."""
    return " ".join(text.split())
