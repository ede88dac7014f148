"""Which further keys the patterns of a stream are matched by: the routes on which its events are appended.

The script that registers, pauses or deletes a pattern changes them together with the control record, and the script
that appends events refuses to run under other routes than those that it was told. So a pattern on a route sees every
event behind its control record, and none is appended to a route that nobody uses.
"""

from __future__ import annotations

from service.errors import UnknownStream
from service.stores.connection import PREFIX

ROUTES_KEY = PREFIX + "routes"

GONE = b"-"
"""In the place of the routes of a stream that was removed, until it is declared again: nothing is appended to it."""


_GONE_REPLY = b"gone"


def require_there(stream: str, reply: object) -> None:
    """Check what a script says of a stream that another caller may just have removed.

    Raises:
        UnknownStream: It was removed.
    """
    if reply == _GONE_REPLY:
        raise UnknownStream.named(stream)


def users_key(stream: str) -> str:
    """The Redis key under which the route of each pattern of a stream is kept, where it has one."""
    return f"{PREFIX}route-users:{stream}"


def as_text(routes: tuple[str, ...]) -> str:
    """Routes as they are stored: their names, sorted."""
    return " ".join(routes)


def from_text(text: bytes) -> tuple[str, ...]:
    """Stored routes."""
    return tuple(text.decode().split())
