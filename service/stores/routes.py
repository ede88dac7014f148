"""The routes of a stream: the further keys of its patterns; the stream's events are also appended by these keys.

The script that registers, pauses or deletes a pattern changes the routes and appends the control record together. The
script for appending events does nothing if its caller names other routes than the stored ones. So a pattern on a route
sees every event after its control record, and no event is appended to an unused route.
"""

from __future__ import annotations

from service.errors import UnknownStream
from service.stores.connection import PREFIX

GONE = b"-"
"""Replaces the routes of a removed stream until the stream is declared again, so that nothing is appended."""


_GONE_REPLY = b"gone"


def require_not_removed(stream: str, reply: object) -> None:
    """Check a script's reply about a stream; raises ``UnknownStream`` if another caller has just removed the stream."""
    if reply == _GONE_REPLY:
        raise UnknownStream.named(stream)


def users_key(stream: str) -> str:
    """The Redis key of a hash with the route of each operator that reads a stream by a further key."""
    return f"{PREFIX}route-users:{stream}"


def as_text(routes: tuple[str, ...]) -> str:
    """The stored form of routes; the caller has sorted their names."""
    return " ".join(routes)


def from_text(text: bytes) -> tuple[str, ...]:
    """Parse stored routes."""
    return tuple(text.decode().split())
