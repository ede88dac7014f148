"""Sessions: who is logged in. The API key stays in this process; a browser holds a random name for it."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from console.calls import Api

COOKIE = "forestall_console"
_LONGEST_IDLE_S = 12 * 3_600.0
_MOST_SESSIONS = 1_000
_MOST_NOTICES = 5


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence that the next page shows: what was done, or why it was refused."""

    text: str
    is_error: bool = False


@dataclass(slots=True)
class Session:
    """A logged-in browser.

    Attributes:
        scopes: What the key may do; ``admin`` includes all others.
        token: A secret that each form of this session sends back.
    """

    api: Api
    name: str
    scopes: tuple[str, ...]
    used_at: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    notices: list[Notice] = field(default_factory=list)

    def may(self, scope: str) -> bool:
        """Whether the key has a scope."""
        return scope in self.scopes or "admin" in self.scopes

    def notify(self, text: str, *, is_error: bool = False) -> None:
        """Show a sentence on the next page."""
        self.notices = [*self.notices, Notice(text, is_error)][-_MOST_NOTICES:]

    def take_notices(self) -> list[Notice]:
        """The sentences for this page, which no other shows."""
        taken, self.notices = self.notices, []
        return taken


class Sessions:
    """The sessions by the digest of their name: a dump of this process's memory logs nobody in.

    A session ends after twelve hours without a request. ``now`` gives seconds on a monotonic clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def open(self, api: Api, name: str, scopes: tuple[str, ...]) -> str:
        """Begin a session; returns its name, the value of the cookie."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = Session(api, name, scopes, self._now())
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, if it has not ended."""
        digest = _digest(cookie)
        session = self._sessions.get(digest)
        if session is None:
            return None
        if self._now() - session.used_at > _LONGEST_IDLE_S:
            del self._sessions[digest]
            return None
        session.used_at = self._now()
        self._sessions.move_to_end(digest)
        return session

    def close(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
