"""The streams that an aggregate has of its own."""

from __future__ import annotations


def moved_stream(aggregate: str) -> str:
    """The name of the stream of the events that are brought together for an aggregate."""
    return f"{aggregate}.inputs"
