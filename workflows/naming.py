"""Normalises names of tasks and event types, so that they can be compared."""

from __future__ import annotations


def normalised(text: str) -> str:
    """Return a name without surrounding white space, and with a single space for each inner run of white space."""
    return " ".join(text.split())
