"""The store of API keys, which has a digest of each key's secret, and the time of the key's last use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from service.errors import TooManyKeys, UnknownKey
from service.stores.connection import PREFIX, Client
from service.stores.record_books import Records, surplus
from streams import listed

Scope: TypeAlias = Literal["admin", "patterns", "ingest", "read"]

USED_KEY = PREFIX + "keys:used"
CREATED_KEY = PREFIX + "keys:created"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The stored record of an API key, without its secret.

    Attributes:
        id: Id of the key, which is a part of the token.
        streams: Streams to which the key gives access, or None for all streams.
        expires_us: Time from which the key is rejected, or None if it never expires.
        former_digest: Digest of the secret before the last rotation, which is accepted until ``former_until_us``.
    """

    id: str
    name: str
    scopes: tuple[Scope, ...]
    streams: tuple[str, ...] | None
    created_us: int
    digest: str
    expires_us: int | None = None
    revoked_us: int | None = None
    former_digest: str | None = None
    former_until_us: int = 0

    def is_usable(self, now_us: int) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)

    def may(self, scope: Scope) -> bool:
        """Return whether the key has a scope. The scope ``admin`` includes all other scopes."""
        return scope in self.scopes or "admin" in self.scopes


class KeyStore(Records[ApiKey]):
    """The API keys, by id.

    If there are more than ``kept`` keys after a key is added, the oldest revoked or expired keys are removed.
    """

    key = PREFIX + "keys"
    one = "the API key"
    form = ApiKey

    def __init__(self, client: Client, *, kept: int = 1_000) -> None:
        super().__init__(client)
        self._kept = kept

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownKey:
        ids = [key.id for key in self.all() if key.name == name]
        advice = f", but {listed(ids)} has this name" if len(ids) == 1 else f", but {listed(ids)} have this name"
        return UnknownKey(f"there is no API key with the id {name!r}{advice if ids else ''}", key=name)

    def add(self, key: ApiKey) -> None:
        """Store a new key. If the store is full of usable keys, raise ``TooManyKeys``."""
        keys = self.all()
        surplus_keys = surplus(keys, self._kept, lambda api_key: not api_key.is_usable(key.created_us))
        if surplus_keys is None:
            raise TooManyKeys(f"there are {len(keys)} API keys; revoke some (DELETE /v1/keys/ID)", limit=self._kept)
        for surplus_key in surplus_keys:
            self._client.hdel(self.key, surplus_key.id)
            self._client.hdel(USED_KEY, surplus_key.id)
        self.insert(key.id, key, ("INCR", CREATED_KEY))

    def all(self) -> list[ApiKey]:
        """Return all keys, oldest first, including revoked and expired keys."""
        return sorted(super().all(), key=lambda key: (key.created_us, key.id))

    def was_any_created(self) -> bool:
        """Return whether any key was ever created, even if it no longer exists."""
        return bool(self._client.exists(CREATED_KEY))

    def note_use(self, key_id: str, now_us: int) -> None:
        self._client.hset(USED_KEY, key_id, str(now_us))

    def last_used_us(self) -> dict[str, int]:
        """Return the time of each key's last use, by id. Keys that were never used are left out."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(USED_KEY))
        return {key_id.decode(): int(used_us) for key_id, used_us in fields.items()}
