"""The library of API keys, which creates, rotates and revokes keys, and creates the first key of a service."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.access.keyring import KeyRing, digest_of, token_of
from service.errors import KeyRefused, KeyUnusable
from service.settings import PREFIX, Settings
from service.stores import ANY, ApiKey, Condition, KeyStore, Scope
from streams import Clock, StreamDeclaration, format_time

MOST_GRACE_S = 7 * 86_400
SCOPES: tuple[Scope, ...] = ("admin", "patterns", "ingest", "read")

_ID_BYTES = 8
_SECRET_BYTES = 32
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDraft:
    """An API key to be created. ``streams`` lists the streams to which the key gives access. None means all streams."""

    name: str
    scopes: Sequence[Scope]
    streams: Sequence[str] | None = None
    expires_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """An API key and the time of its last use.

    The time is accurate to the minute. It is None if the key was never used.
    """

    key: ApiKey
    last_used_us: int | None = None


class KeyLibrary:
    """Creates, lists, rotates and revokes API keys.

    After each change of a key, the key ring ``ring`` drops its cached record of the key.
    """

    def __init__(self, keys: KeyStore, ring: KeyRing, settings: Settings, clock: Clock) -> None:
        self._keys = keys
        self._ring = ring
        self._settings = settings
        self._clock = clock

    def create(self, draft: KeyDraft) -> tuple[ApiKey, str]:
        """Create a key. Return the key and its token. The token is not stored, so this is the only time to read it."""
        now_us = self._clock.now_us()
        self._check(draft, now_us)
        secret = secrets.token_hex(_SECRET_BYTES)
        key = ApiKey(
            id=secrets.token_hex(_ID_BYTES),
            name=draft.name,
            scopes=tuple(scope for scope in SCOPES if scope in draft.scopes),
            streams=None if draft.streams is None else tuple(dict.fromkeys(draft.streams)),
            created_us=now_us,
            digest=digest_of(secret),
            expires_us=draft.expires_us,
        )
        self._keys.add(key)
        self._ring.forget(key.id)
        return key, token_of(key.id, secret)

    def all(self) -> list[KeyReport]:
        """Return all keys, oldest first, including revoked and expired keys."""
        used_us = self._keys.last_used_us()
        return [KeyReport(key=key, last_used_us=used_us.get(key.id)) for key in self._keys.all()]

    def get(self, key_id: str) -> KeyReport:
        return KeyReport(key=self._keys.get(key_id), last_used_us=self._keys.last_used_us().get(key_id))

    def rotate(self, key_id: str, grace_s: int = 0, condition: Condition = ANY) -> tuple[ApiKey, str]:
        """Replace the secret of a key. Return the key, with unchanged rights, and its new token.

        The former secret is accepted for another ``grace_s`` seconds. If the key is revoked or expired, raise
        ``KeyUnusable``.
        """
        assert 0 <= grace_s <= MOST_GRACE_S
        now_us = self._clock.now_us()
        secret = secrets.token_hex(_SECRET_BYTES)

        def rotated(key: ApiKey) -> ApiKey:
            if not key.is_usable(now_us):
                raise KeyUnusable(
                    f"the API key {key.id} is revoked or has expired; create another one (POST /v1/keys)", key=key.id
                )
            until_us = now_us + grace_s * 1_000_000
            return replace(key, digest=digest_of(secret), former_digest=key.digest, former_until_us=until_us)

        key = self._keys.change(key_id, rotated, condition)
        self._ring.forget(key_id)
        return key, token_of(key_id, secret)

    def revoke(self, key_id: str, condition: Condition = ANY) -> None:
        """Revoke a key. The key is still listed. Revoking it again has no effect."""
        now_us = self._clock.now_us()

        def revoked(key: ApiKey) -> ApiKey:
            return key if key.revoked_us is not None else replace(key, revoked_us=now_us)

        self._keys.change(key_id, revoked, condition)
        self._ring.forget(key_id)

    def create_first(self) -> str | None:
        """Create a key with all rights and return its token.

        If the service requires no key, or an admin key exists, create nothing and return None.
        """
        if not self._ring.is_demanded() or self._has_admin(self._clock.now_us()):
            return None
        return self.create(KeyDraft(name="bootstrap", scopes=("admin",)))[1]

    def _has_admin(self, now_us: int) -> bool:
        """Return whether a key with all rights can be used, from the settings or from the store."""
        if self._settings.api_key is not None:
            return True
        return any(key.may("admin") and key.is_usable(now_us) for key in self._keys.all())

    def _check(self, draft: KeyDraft, now_us: int) -> None:
        if not 1 <= len(draft.name.strip()) <= len(draft.name) <= _LONGEST_NAME or not draft.name.isprintable():
            raise KeyRefused(f"the name of an API key has 1 to {_LONGEST_NAME} printable characters")
        if not draft.scopes:
            raise KeyRefused(f"an API key has at least one scope of {', '.join(SCOPES)}")
        if draft.expires_us is not None and draft.expires_us <= now_us:
            raise KeyRefused(f"an API key cannot expire in the past: {format_time(draft.expires_us)} is over")
        if draft.streams is not None:
            self._check_streams(draft.scopes, draft.streams)
        if self._settings.auth != "off" and "admin" not in draft.scopes and not self._has_admin(now_us):
            raise KeyRefused(
                "from the first key on, every client needs one, so the first must have the scope admin; or set "
                f"{PREFIX}API_KEY, which has all rights"
            )

    def _check_streams(self, scopes: Sequence[Scope], streams: Sequence[str]) -> None:
        if "admin" in scopes:
            raise KeyRefused("an API key with the scope admin has access to every stream; leave out streams or admin")
        if not streams:
            raise KeyRefused("an API key without access to any stream is useless; leave out streams to allow all")
        for name in streams:
            StreamDeclaration(name=name)  # raises for invalid names of streams
