"""Entries that break the matcher are set aside, on record, so that they break it once and not for ever.

Two ways lead there. An entry whose matching raises what nobody foresaw is set aside at once. An entry that takes the
whole process down (out of memory, a crash in native code) is found by counting: tries of a micro-batch are counted
before it begins and forgotten when it is through; after ``_TRIES`` tries it is matched entry by entry, with a count for
each, and the entry that is tried as often is set aside. The record is kept beside the log, and a process that
matches these entries again, after a crash or from an older snapshot, skips the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import redis

from shards import StoredEntry, quarantine_note

_QUARANTINE_KEY = "forestall:quarantine:{shard}"
_TRIES_KEY = "forestall:tries"
_TRIES = 3


class Quarantine:
    """The record of one log.

    Args:
        server: Where the log is.
    """

    def __init__(self, server: redis.Redis) -> None:
        self._server = server

    def begin(self, shard: int, after: str) -> bool:
        """Count a try of the micro-batch of a shard that begins behind ``after``.

        Returns:
            Whether it has been tried so often that its entries should be watched one by one.
        """
        return self._count(_field(shard, after)) > _TRIES

    def done(self, shard: int, after: str) -> None:
        """The micro-batch is through."""
        self._server.hdel(_TRIES_KEY, _field(shard, after))

    def watch(self, shard: int, entry: StoredEntry) -> bool:
        """Count a try of one entry; whether it is to be set aside, as those before ended the process."""
        return self._count(_field(shard, "", entry.position)) > _TRIES

    def unwatch(self, shard: int, entry: StoredEntry) -> None:
        """The entry is through."""
        self._server.hdel(_TRIES_KEY, _field(shard, "", entry.position))

    def set_aside(self, shard: int, entry: StoredEntry, reason: str) -> None:
        """Put an entry on record; the first reason stays."""
        self._server.hsetnx(_QUARANTINE_KEY.format(shard=shard), entry.position, reason)

    def screened(self, shard: int, entries: Sequence[StoredEntry]) -> list[StoredEntry]:
        """The entries, with those that are set aside replaced by notes that say so."""
        found = cast("dict[bytes, bytes]", self._server.hgetall(_QUARANTINE_KEY.format(shard=shard)))
        if not found:
            return list(entries)
        reasons = {position.decode(): reason.decode() for position, reason in found.items()}
        return [
            entry if entry.position not in reasons else quarantine_note(entry, reasons[entry.position])
            for entry in entries
        ]

    def _count(self, field: str) -> int:
        return self._server.hincrby(_TRIES_KEY, field, 1)


def _field(*parts: object) -> str:
    return ":".join(str(part) for part in parts)
