"""The routes of a stream: the further keys of its patterns, by which its events are appended again.

The script that registers, pauses or deletes a pattern changes the routes together with the control record, and the
script that appends events does nothing if the routes are not those that its caller names. So a pattern on a route sees
every event after its control record, and no event is appended to an unused route.
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
    """The Redis key of the hash that has the route of each pattern that listens to a stream by a route."""
    return f"{PREFIX}route-users:{stream}"


def as_text(routes: tuple[str, ...]) -> str:
    """The stored form of routes: sorted names."""
    return " ".join(routes)


def from_text(text: bytes) -> tuple[str, ...]:
    """The routes of a stored text."""
    return tuple(text.decode().split())
