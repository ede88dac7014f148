"""API keys: records without secrets, and when each key was last used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from service.errors import TooManyKeys, UnknownKey
from service.stores.connection import PREFIX, Client
from service.stores.record_books import Records, surplus

Scope: TypeAlias = Literal["admin", "patterns", "ingest", "read"]

USED_KEY = PREFIX + "keys:used"
CREATED_KEY = PREFIX + "keys:created"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The stored record of an API key, without its secret; the ``id`` is a part of the token.

    ``streams``: the only streams that the key may touch; None: all. From ``expires_us`` on the key is refused; None:
    never.
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
        """Whether the key is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)

    def may(self, scope: Scope) -> bool:
        """Whether the key has a scope; ``admin`` includes all others."""
        return scope in self.scopes or "admin" in self.scopes


class KeyStore(Records[ApiKey]):
    """The API keys by id; if a new key exceeds ``kept``, the oldest revoked or expired keys are removed."""

    key = PREFIX + "keys"
    one = "the API key"
    form = ApiKey

    def __init__(self, client: Client, *, kept: int = 1_000) -> None:
        super().__init__(client)
        self._kept = kept

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownKey:
        return UnknownKey(f"there is no API key {name!r}", key=name)

    def add(self, key: ApiKey) -> None:
        """Store a new key; raises ``TooManyKeys`` if the store is full and too few keys are no longer usable."""
        keys = self.all()
        surplus_keys = surplus(keys, self._kept, lambda api_key: not api_key.is_usable(key.created_us))
        if surplus_keys is None:
            raise TooManyKeys(f"there are {len(keys)} API keys; revoke some (DELETE /v1/keys/ID)", limit=self._kept)
        for surplus_key in surplus_keys:
            self._client.hdel(self.key, surplus_key.id)
            self._client.hdel(USED_KEY, surplus_key.id)
        self.insert(key.id, key, ("INCR", CREATED_KEY))

    def all(self) -> list[ApiKey]:
        """All keys, oldest first, including revoked and expired ones."""
        return sorted(super().all(), key=lambda key: (key.created_us, key.id))

    def was_any_created(self) -> bool:
        """Whether any key was ever created, even if it no longer exists."""
        return bool(self._client.exists(CREATED_KEY))

    def note_use(self, key_id: str, now_us: int) -> None:
        self._client.hset(USED_KEY, key_id, str(now_us))

    def last_used_us(self) -> dict[str, int]:
        """The time of each key's last noted use; keys that were never used are missing."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(USED_KEY))
        return {key_id.decode(): int(used_us) for key_id, used_us in fields.items()}
