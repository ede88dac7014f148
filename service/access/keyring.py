"""The key ring, which checks clients' tokens and decides whether the service requires an API key."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from service.errors import StoreUnavailable
from service.latest_used import LatestUsed
from service.settings import Settings, is_loopback
from service.stores import ApiKey, KeyStore, Scope
from streams import Clock, format_time

ENVIRONMENT = "environment"

_TOKEN = re.compile(r"fs_([0-9a-f]{16})_([0-9a-f]{64})")
_REMEMBERED_S = 1.0
_MOST_REMEMBERED = 1_024
_USE_NOTED_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated caller, with the rights of its API key.

    Attributes:
        id: Id of the API key, or ``environment`` for the key in the settings, or None if the service requires no key.
        streams: Streams to which the caller has access, or None for access to all streams.
    """

    id: str | None
    name: str | None
    scopes: tuple[Scope, ...]
    streams: tuple[str, ...] | None = None

    def may(self, scope: Scope) -> bool:
        """Return whether the caller has a scope. The scope ``admin`` includes all other scopes."""
        return scope in self.scopes or "admin" in self.scopes

    def may_touch(self, stream: str | None) -> bool:
        """Return whether the caller has access to a stream's resources.

        If ``stream`` is None, return whether the caller has access to resources that belong to no stream.
        """
        return self.streams is None or stream in self.streams


ANYBODY = Caller(id=None, name=None, scopes=("admin",))
_OPERATOR = Caller(id=ENVIRONMENT, name="FORESTALL_API_KEY", scopes=("admin",))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a token.

    ``caller`` is None if the token is rejected. In this case ``reason`` explains the rejection, otherwise it is empty.
    """

    caller: Caller | None
    reason: str = ""


class KeyRing:
    """Checks tokens against the stored API keys.

    Key records are cached for one second, so that not every request reads Redis. Therefore a key that another process
    revokes is accepted for up to one more second. ``now`` returns the seconds of a monotonic clock.
    """

    def __init__(
        self, keys: KeyStore, settings: Settings, clock: Clock, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = keys
        self._settings = settings
        self._clock = clock
        self._now = now
        self._lock = Lock()
        self._remembered: LatestUsed[str, tuple[ApiKey | None, float]] = LatestUsed(_MOST_REMEMBERED)
        self._noted: LatestUsed[str, float] = LatestUsed(_MOST_REMEMBERED)
        self._checked_at: float | None = None
        self._was_any_created = False
        secret = settings.api_key
        self._operator_digest = digest_of(secret.get_secret_value() if secret else secrets.token_hex(32))
        self._decoy_digest = digest_of(secrets.token_hex(32))

    def is_demanded(self) -> bool:
        settings = self._settings
        if settings.auth != "auto":
            return settings.auth == "keys"
        if settings.api_key is not None or not is_loopback(settings.api_host) or self._was_any_created:
            return True
        if not self._is_check_recent():
            self._was_any_created = self._keys.was_any_created()
            self._checked_at = self._now()
        return self._was_any_created

    def _is_check_recent(self) -> bool:
        return self._checked_at is not None and self._now() <= self._checked_at + _REMEMBERED_S

    def is_remembered(self, token: str | None) -> bool:
        """Return whether ``verdict`` and ``note_use`` can handle a token from the caches, without access to Redis."""
        settings, token_match = self._settings, _TOKEN.fullmatch(token or "")
        needs_look = settings.auth == "auto" and settings.api_key is None and not self._was_any_created
        if needs_look and not self._is_check_recent():
            return False
        if token_match is None:
            return True
        now, (_, read_at) = self._now(), self._remembered.get(token_match[1], (None, -math.inf))
        return now <= read_at + _REMEMBERED_S and now < self._noted.get(token_match[1], -math.inf) + _USE_NOTED_EVERY_S

    def verdict(self, token: str) -> Verdict:
        """Check a token, and return its caller or the reason for its rejection.

        The duration of the check does not reveal which part of a wrong token is wrong, because every check compares
        all digests, in constant time.
        """
        token_match = _TOKEN.fullmatch(token)
        key = self._record(token_match[1]) if token_match else None
        secret_digest = digest_of(token_match[2] if token_match else token)
        is_operator = hmac.compare_digest(digest_of(token), self._operator_digest)
        is_current = hmac.compare_digest(secret_digest, key.digest if key else self._decoy_digest)
        is_former = hmac.compare_digest(
            secret_digest, key.former_digest if key and key.former_digest else self._decoy_digest
        )
        if is_operator:
            return Verdict(_OPERATOR)
        if key is None or not (is_current or is_former):
            return Verdict(None, "the API key is wrong")
        return self._holder(key, is_former=not is_current)

    def note_use(self, caller: Caller) -> None:
        """Store the current time as the time of the key's last use, at most once a minute."""
        if caller.id is None or caller.id == ENVIRONMENT:
            return
        now = self._now()
        with self._lock:
            noted_at = self._noted.get(caller.id)
            if noted_at is not None and now < noted_at + _USE_NOTED_EVERY_S:
                return
            self._noted[caller.id] = now
        with suppress(StoreUnavailable):  # the request itself may not need Redis
            self._keys.note_use(caller.id, self._clock.now_us())

    def forget(self, key_id: str) -> None:
        """Drop what is cached about a key, after the key was created or changed.

        The next check of a token reads Redis: the record of the key, and whether the service has any keys.
        """
        with self._lock:
            self._remembered.pop(key_id, None)
            self._checked_at = None

    def _record(self, key_id: str) -> ApiKey | None:
        """Return a key's record, or None for an unknown id. The result comes from a cache and may be a second old."""
        with self._lock:
            cached = self._remembered.get(key_id)
        if cached is not None and self._now() <= cached[1] + _REMEMBERED_S:
            return cached[0]
        read_at = self._now()
        record = self._keys.find(key_id)
        with self._lock:
            self._remembered[key_id] = record, read_at
        return record

    def _holder(self, key: ApiKey, *, is_former: bool) -> Verdict:
        """Return the verdict on a token whose secret is correct, but whose key may be revoked or expired.

        ``is_former`` is true if the token has the secret that the last rotation replaced.
        """
        now_us = self._clock.now_us()
        if key.revoked_us is not None:
            return Verdict(None, f"the API key {key.id} was revoked at {format_time(key.revoked_us)}")
        if key.expires_us is not None and now_us >= key.expires_us:
            return Verdict(None, f"the API key {key.id} expired at {format_time(key.expires_us)}")
        if is_former and now_us >= key.former_until_us:
            return Verdict(None, f"the API key {key.id} has another secret since it was rotated")
        return Verdict(Caller(id=key.id, name=key.name, scopes=key.scopes, streams=key.streams))


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token, so that it may contain a secret."""
    return _TOKEN.fullmatch(text) is not None


def token_of(key_id: str, secret: str) -> str:
    """Return the token that clients send to use a key."""
    return f"fs_{key_id}_{secret}"


def digest_of(secret: str) -> str:
    """Return the hexadecimal SHA-256 of a secret, which is stored instead of the secret."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
