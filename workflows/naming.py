"""Names of tasks and event types as they are compared."""

from __future__ import annotations


def normalised(text: str) -> str:
    """A name with runs of white space as one space, none around it."""
    return " ".join(text.split())
