"""The format version of the whole store, and the lock that a process holds while it migrates the store.

A store without a version number is new if it has no log. Otherwise it has the first format, which did not store its
version number.
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
    """The lock for changing the store's format, which expires one minute after its last renewal.

    ``token`` is the lock's value, by which Redis recognises the holder.
    """

    def __init__(self, client: Client, token: str) -> None:
        self._token = token
        self._advance = register(client, "locks/advance_format")
        self._renew = register(client, "locks/renew")

    def renew(self) -> None:
        """Extend the lock by another minute. If the lock was lost, raise ``StoreUnavailable``."""
        if not self._renew(lock=LOCK_KEY, token=self._token, lock_ms=_LOCK_MS):
            raise _lost()

    def advance(self, form: int) -> None:
        """Set the format version of the store. If the lock was lost, raise ``StoreUnavailable``."""
        if not self._advance(format=FORMAT_KEY, lock=LOCK_KEY, token=self._token, form=form, lock_ms=_LOCK_MS):
            raise _lost()


class StoreFormat:
    """Reads and locks the format version of a store."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._release = register(client, "locks/release")

    def read(self) -> int | None:
        """Return the format version of the store, or None if the store is new."""
        stored = cast("bytes | None", self._client.get(FORMAT_KEY))
        if stored is not None:
            return int(stored)
        return FIRST_FORMAT if self._client.exists(LAYOUT_KEY) else None

    @contextmanager
    def locked(self) -> Iterator[FormatLock | None]:
        """Hold the lock during the ``with`` block and yield it. If another process holds the lock, yield None."""
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
