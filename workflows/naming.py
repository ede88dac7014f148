"""Normal form of names of tasks and event types, for comparison."""

from __future__ import annotations


def normalised(text: str) -> str:
    """A name without surrounding white space, and with one space for each inner run of white space."""
    return " ".join(text.split())
