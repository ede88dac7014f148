"""The format version of the whole store, and the lock under which it is changed.

A store without a format version is new if it has no log; otherwise it has the first format, which stored no version.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from service.errors import StoreUnavailable
from service.stores.connection import PREFIX, Client, register
from streams import LAYOUT_KEY

FORMAT_KEY = PREFIX + "store:format"
LOCK_KEY = PREFIX + "store:lock"
FIRST_FORMAT = 1

_LOCK_MS = 60_000


class FormatLock:
    """The lock for changing the store's format; expires a minute after it was last renewed. ``token``: its value."""

    def __init__(self, client: Client, token: str) -> None:
        self._token = token
        self._advance = register(client, "locks/advance_format")
        self._renew = register(client, "locks/renew")

    def renew(self) -> None:
        """Hold the lock for another minute; raises ``StoreUnavailable`` if it was lost."""
        if not self._renew(lock=LOCK_KEY, token=self._token, lock_ms=_LOCK_MS):
            raise _lost()

    def advance(self, form: int) -> None:
        """Set the format of the store; raises ``StoreUnavailable`` if the lock was lost."""
        if not self._advance(format=FORMAT_KEY, lock=LOCK_KEY, token=self._token, form=form, lock_ms=_LOCK_MS):
            raise _lost()


class StoreFormat:
    """Reads and locks the format of a store."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._release = register(client, "locks/release")

    def read(self) -> int | None:
        """The format of the store; None if nothing is stored yet."""
        stored = cast("bytes | None", self._client.get(FORMAT_KEY))
        if stored is not None:
            return int(stored)
        return FIRST_FORMAT if self._client.exists(LAYOUT_KEY) else None

    @contextmanager
    def locked(self) -> Iterator[FormatLock | None]:
        """Hold the lock during the ``with`` block; yields None if another process holds it."""
        token = uuid.uuid4().hex
        if not self._client.set(LOCK_KEY, token, nx=True, px=_LOCK_MS):
            yield None
            return
        try:
            yield FormatLock(self._client, token)
        finally:
            self._release(lock=LOCK_KEY, token=token)


def _lost() -> StoreUnavailable:
    return StoreUnavailable("the store is being brought up to date by another process; try again in a moment")
