"""The keyspace: all Redis keys of the service, which backups read and write as raw values.

A value is read and written in parts of bounded size, so that a long event log never has to fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from redis.exceptions import RedisError

from service.errors import StoreUnavailable
from service.stores.connection import PREFIX, Client, register
from service.stores.heartbeat import FAILURE_KEY, HEARTBEAT_KEY, STARTING_KEY

RESTORING_KEY = PREFIX + "restoring"

_PART_ELEMENTS = 500
_PART_BYTES = 16_000_000  # a part ends after the element with which it has this size
_TRANSIENT_KEYS = (FAILURE_KEY, HEARTBEAT_KEY, STARTING_KEY, RESTORING_KEY)
_NUMBERS = (PREFIX + "alerts:number", PREFIX + "incidents:number")
_SKIPPED = 1_000_000_000  # more than are written after a backup
_UNSAVED = frozenset(key.encode() for key in _TRANSIENT_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """A part of a key's value.

    Attributes:
        kind: Redis' name of the value's type: ``string``, ``hash``, ``list``, ``set``, ``zset`` or ``stream``.
        expires_ms: Time at which the key expires, milliseconds UTC, or 0 if it never expires.
        values: The value as a flat sequence. For a string, this is a piece. For a list or set, these are the members.
            In a hash, fields and values alternate. In a sorted set, members and scores alternate. In a stream, each
            entry has its id, the number of its fields and values, and then its fields and values, alternating. The last
            part of a stream ends with an empty id, the last generated id, the number of entries ever added, and the
            greatest deleted id.
    """

    key: bytes
    kind: str
    expires_ms: int
    values: tuple[bytes, ...]


class Keyspace:
    """Reads, writes and deletes all keys with the prefix of the service."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._part = register(client, "keyspace/read_part")

    def names(self) -> list[bytes]:
        """Return the names of all keys that a backup contains, sorted."""
        keys = set(self._client.scan_iter(match=PREFIX + "*", count=1_000))
        return sorted(keys - _UNSAVED)

    def read(self, key: bytes) -> Iterator[KeyPart]:
        """Yield the parts of a key's value. If the key no longer exists, yield nothing."""
        kind = cast(bytes, self._client.type(key)).decode()
        expires_ms = max(0, self._client.pexpiretime(cast(str, key)))
        if kind == "string":
            parts = self._string(key)
        elif kind == "none":
            parts = iter(())
        else:
            parts = self._elements(key, kind)
        for values in parts:
            yield KeyPart(key=key, kind=kind, expires_ms=expires_ms, values=values)

    def write(self, part: KeyPart) -> None:
        """Append a part to the value of its key. Parts must be written in the order in which ``read`` yields them.

        If Redis refuses the value, raise ``StoreUnavailable``.
        """
        commands = list(_commands(part))
        if part.expires_ms:
            commands.append(("PEXPIREAT", part.key, part.expires_ms))
        try:
            with self._client.pipeline(transaction=False) as pipe:
                send: Callable[..., Any] = pipe.execute_command
                for command in commands:
                    send(*command)
                pipe.execute()
        except RedisError as error:
            raise StoreUnavailable(f"Redis rejects the key {part.key!r}: {error}") from error

    def delete(self) -> None:
        """Delete every key that a backup contains, and the heartbeat."""
        for key in [*self.names(), HEARTBEAT_KEY.encode()]:
            self._client.unlink(key)

    def begin_restoring(self) -> None:
        """Prevent the service from starting until ``end_restoring`` is called."""
        self._client.set(RESTORING_KEY, 1)

    def end_restoring(self) -> None:
        """Allow the service to start again. Call this after all keys are restored."""
        self._client.delete(RESTORING_KEY)

    def skip_numbers(self) -> None:
        """Leave out the numbers of alerts and incidents that were written after the backup was made.

        A client may have cursors with these numbers. New results get greater numbers, so the client misses none.
        """
        for key in _NUMBERS:
            self._client.incrby(key, _SKIPPED)

    def is_restoring(self) -> bool:
        """Return whether a backup is being restored, or a restoration was interrupted."""
        return bool(self._client.exists(RESTORING_KEY))

    def _string(self, key: bytes) -> Iterator[tuple[bytes, ...]]:
        for start in range(0, self._client.strlen(key) or 1, _PART_BYTES):
            value = cast(bytes, self._client.getrange(key, start, start + _PART_BYTES - 1))
            if value or self._client.exists(key):  # an empty value may be that of a key that no longer exists
                yield (value,)

    def _elements(self, key: bytes, kind: str) -> Iterator[tuple[bytes, ...]]:
        place = b""
        while True:
            elements, place = self._part(key=key, kind=kind, after=place, most=_PART_ELEMENTS, most_bytes=_PART_BYTES)
            if elements:
                yield tuple(value for element in elements for value in element)
            if not place:
                break
        if kind == "stream":
            facts = self._client.xinfo_stream(key)
            added, deleted = facts.get("entries-added", 0), facts.get("max-deleted-entry-id", b"0-0")
            yield (b"", facts["last-generated-id"], str(added).encode(), deleted)


def _commands(part: KeyPart) -> Iterator[tuple[Any, ...]]:
    words = {"string": "APPEND", "hash": "HSET", "list": "RPUSH", "set": "SADD"}
    if part.kind == "stream":
        yield from _stream_commands(part)
    elif part.kind == "zset":
        pairs = zip(part.values[1::2], part.values[::2], strict=True)
        yield ("ZADD", part.key, *(word for pair in pairs for word in pair))
    else:
        yield (words[part.kind], part.key, *part.values)


def _stream_commands(part: KeyPart) -> Iterator[tuple[Any, ...]]:
    values, place = part.values, 0
    while place < len(values):
        if not values[place]:
            _, last, added, deleted = values[place:]
            # Creating and destroying a group creates an empty stream.
            yield ("XGROUP", "CREATE", part.key, "restoring", "0", "MKSTREAM")
            yield ("XGROUP", "DESTROY", part.key, "restoring")
            yield ("XSETID", part.key, last, "ENTRIESADDED", added, "MAXDELETEDID", deleted)
            return
        end = place + 2 + int(values[place + 1])
        yield ("XADD", part.key, values[place], *values[place + 2 : end])
        place = end
