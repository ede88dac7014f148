"""The routes of a stream: the further keys that its patterns are matched by, under which its events are appended again.

The script that registers, pauses or deletes a pattern changes the routes together with the control record, and the
script that appends events refuses to run under other routes than those that its caller names. So a pattern on a route
sees every event after its control record, and no event is appended to an unused route.
"""

from __future__ import annotations

from service.errors import UnknownStream
from service.stores.connection import PREFIX

GONE = b"-"
"""Replaces the routes of a removed stream until the stream is declared again: nothing is appended to it."""


_GONE_REPLY = b"gone"


def require_there(stream: str, reply: object) -> None:
    """Check the reply of a script about a stream; raises ``UnknownStream`` if another caller has just removed it."""
    if reply == _GONE_REPLY:
        raise UnknownStream.named(stream)


def users_key(stream: str) -> str:
    """The Redis key under which the route of each pattern of a stream is kept, where it has one."""
    return f"{PREFIX}route-users:{stream}"


def as_text(routes: tuple[str, ...]) -> str:
    """Routes in their stored form: sorted names."""
    return " ".join(routes)


def from_text(text: bytes) -> tuple[str, ...]:
    """Stored routes."""
    return tuple(text.decode().split())
