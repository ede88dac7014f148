"""API keys: records without secrets, and when each key was last used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, cast

from service.errors import RegistryContended, TooManyKeys, UnknownKey
from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode, surplus

Scope: TypeAlias = Literal["admin", "patterns", "ingest", "read"]

KEYS_KEY = PREFIX + "keys"
USED_KEY = PREFIX + "keys:used"
CREATED_KEY = PREFIX + "keys:created"

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The stored record of an API key, without its secret; the ``id`` is a part of the token.

    ``streams``: the only streams that it may touch. It is refused from ``expires_us`` on. None: all streams, never.
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
        """Whether it is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope; ``admin`` includes all others."""
        return scope in self.scopes or "admin" in self.scopes


class KeyStore:
    """Stores the API keys, up to the number ``kept``: beyond it, the oldest that are no longer usable are removed."""

    def __init__(self, client: Client, *, kept: int = 1_000) -> None:
        self._client = client
        self._kept = kept
        self._add = register(client, "registry/add_key")
        self._change = register(client, "registry/replace_record")

    def add(self, key: ApiKey) -> None:
        """Store a new key; raises ``TooManyKeys`` if the store is full and too few keys are no longer usable."""
        known = self.all()
        over = surplus(known, self._kept, lambda one: not one.is_usable(key.created_us))
        if over is None:
            raise TooManyKeys(f"there are {len(known)} API keys; revoke some (DELETE /v1/keys/ID)", limit=self._kept)
        for old in over:
            self._client.hdel(KEYS_KEY, old.id)
            self._client.hdel(USED_KEY, old.id)
        self._add(records=KEYS_KEY, created=CREATED_KEY, id=key.id, record=encode(**asdict(key)))

    def find(self, key_id: str) -> ApiKey | None:
        """The key with an id; None if there is none."""
        body = self._body(key_id)
        return None if body is None else _key(body, key_id)

    def get(self, key_id: str) -> ApiKey:
        """The key with an id; raises ``UnknownKey``."""
        if (found := self.find(key_id)) is None:
            raise _unknown(key_id)
        return found

    def all(self) -> list[ApiKey]:
        """All keys, oldest first, including revoked and expired ones."""
        records = cast("dict[bytes, bytes]", self._client.hgetall(KEYS_KEY))
        keys = [_key(body, key_id.decode()) for key_id, body in records.items()]
        return sorted(keys, key=lambda key: (key.created_us, key.id))

    def change(self, key_id: str, changed: Callable[[ApiKey], ApiKey]) -> ApiKey:
        """Replace a key by a changed form; repeated if another writer came first."""
        for _ in range(_ATTEMPTS):
            body = self._body(key_id)
            if body is None:
                raise _unknown(key_id)
            wanted = changed(_key(body, key_id))
            if self._change(records=KEYS_KEY, id=key_id, before=body, after=encode(**asdict(wanted))):
                return wanted
        raise RegistryContended.over(f"the API key {key_id!r}")

    def was_any_created(self) -> bool:
        """Whether a key was ever created, even if it no longer exists."""
        return bool(self._client.exists(CREATED_KEY))

    def note_use(self, key_id: str, now_us: int) -> None:
        """Store when a key was used."""
        self._client.hset(USED_KEY, key_id, str(now_us))

    def last_used_us(self) -> dict[str, int]:
        """When each key was last used, as far as noted; keys that were never used are missing."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(USED_KEY))
        return {key_id.decode(): int(used_us) for key_id, used_us in found.items()}

    def _body(self, key_id: str) -> bytes | None:
        return cast("bytes | None", self._client.hget(KEYS_KEY, key_id))


def _unknown(key_id: str) -> UnknownKey:
    return UnknownKey(f"there is no API key {key_id!r}", key=key_id)


def _key(body: bytes, key_id: str) -> ApiKey:
    fields = decode(body, f"the API key {key_id!r}")
    streams = fields["streams"]
    return ApiKey(
        **{**fields, "scopes": tuple(fields["scopes"]), "streams": None if streams is None else tuple(streams)}
    )
