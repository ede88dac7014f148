"""Sessions of logged-in browsers. API keys stay in this process. A browser holds a random session name."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from console.calls import Api
from console.formats import plural

COOKIE = "forestall_console"
_LONGEST_IDLE_S = 12 * 3_600.0
_MOST_SESSIONS = 1_000
_MOST_NOTICES = 5


NoticeKind: TypeAlias = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the next page: what was done (``ok``), a warning, or why it was refused (``bad``)."""

    text: str
    kind: NoticeKind = "ok"


@dataclass(slots=True)
class Session:
    """A logged-in browser.

    Attributes:
        scopes: What the key may do. ``admin`` includes all others.
        streams: The only streams that the key may access. None for all.
        token: A secret. Each form of this session sends it back.
    """

    api: Api
    name: str
    scopes: tuple[str, ...]
    streams: tuple[str, ...] | None
    used_at: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    notices: list[Notice] = field(default_factory=list)
    dropped_notices: int = 0

    def may(self, scope: str) -> bool:
        """Return whether the key has a scope."""
        return scope in self.scopes or "admin" in self.scopes

    def notify(self, text: str, kind: NoticeKind = "ok") -> None:
        """Add a message for the next page."""
        self.notices.append(Notice(text, kind))
        if len(self.notices) > _MOST_NOTICES:
            del self.notices[0]
            self.dropped_notices += 1

    def take_notices(self) -> list[Notice]:
        """Return the messages and remove them, so that no other page shows them."""
        notices, dropped = self.notices, self.dropped_notices
        self.notices, self.dropped_notices = [], 0
        if dropped:
            notices.insert(0, Notice(f"{plural(dropped, 'earlier message')} not shown."))
        return notices


class Sessions:
    """The open sessions. Only digests of the session names are stored, so the table reveals no valid name.

    A session ends after twelve hours without a request. ``now`` gives seconds on a monotonic clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._apis: dict[bytes, Api] = {}

    def api(self, url: str, key: str | None) -> Api:
        """Return the API client for a key. Sessions with the same key share the client and its recent answers."""
        digest = _digest(key or "")
        if digest not in self._apis:
            self._apis[digest] = Api(url, key)
        return self._apis[digest]

    async def release(self, api: Api) -> None:
        """Close the connections of ``api`` if no session uses its key any more."""
        if api.users == 0:
            self._apis = {digest: other_api for digest, other_api in self._apis.items() if other_api is not api}
            await api.close()

    async def open(self, api: Api, caller: Mapping[str, Any]) -> str:
        """Open a session for a key, whose rights are in ``caller``. Return the session name for the cookie."""
        api.users += 1
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = Session(
            api=api,
            name=caller["name"] or "no key",
            scopes=tuple(caller["scopes"]),
            streams=None if caller["streams"] is None else tuple(caller["streams"]),
            used_at=self._now(),
        )
        oldest = next(iter(self._sessions))
        if len(self._sessions) > _MOST_SESSIONS or self._is_over(self._sessions[oldest]):
            await self._end(oldest)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, or None if it has ended."""
        digest = _digest(cookie)
        session = self._sessions.get(digest)
        if session is None or self._is_over(session):
            return None
        session.used_at = self._now()
        self._sessions.move_to_end(digest)
        return session

    async def close(self, cookie: str) -> None:
        await self._end(_digest(cookie))

    async def close_all(self) -> None:
        for digest in list(self._sessions):
            await self._end(digest)

    def _is_over(self, session: Session) -> bool:
        return self._now() - session.used_at > _LONGEST_IDLE_S

    async def _end(self, digest: bytes) -> None:
        session = self._sessions.pop(digest, None)
        if session is not None:
            session.api.users -= 1
            await self.release(session.api)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
