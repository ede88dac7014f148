"""The routes of a stream, one for each further key that an active pattern uses.

Each event is appended once by its correlation key and once by each route. The script that registers, pauses or deletes
a pattern changes the routes and appends the control record atomically. If a caller passes outdated routes to the script
that appends events, the script does nothing. So a pattern on a route sees every event after its control record, and no
event is appended to an unused route.
"""

from __future__ import annotations

from service.errors import UnknownStream
from service.stores.connection import PREFIX

GONE = b"-"
"""Stored in place of a removed stream's routes, so that no events are appended until the stream is declared again."""


_GONE_REPLY = b"gone"


def require_not_removed(stream: str, reply: object) -> None:
    """Raise ``UnknownStream`` if a script replied that the stream has been removed."""
    if reply == _GONE_REPLY:
        raise UnknownStream.named(stream)


def users_key(stream: str) -> str:
    """Return the Redis key of a hash with a stream's routes. A route is the further key by which an operator reads."""
    return f"{PREFIX}route-users:{stream}"


def as_text(routes: tuple[str, ...]) -> str:
    """Return the stored form of routes. The caller must have sorted the routes."""
    return " ".join(routes)


def from_text(text: bytes) -> tuple[str, ...]:
    """Parse stored routes."""
    return tuple(text.decode().split())
