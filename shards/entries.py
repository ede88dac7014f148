"""Entries of a shard's log, before any check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import orjson

from streams import EventBatch, LogEntry, RecordKind, Tick

# Kind of the entry that replaces an entry that broke the matcher; the log itself has no such entries.
QUARANTINED = "quarantined"
_GROUP_BYTES = 8_000_000  # about 65,536 events; larger groups save nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry as the log returned it; this release may not know its kind."""

    position: str
    kind: str
    stream: str
    body: bytes
    route: str = ""


@dataclass(frozen=True, kw_only=True)
class EventsEntry:
    """An entry of the kind ``events`` whose batch is in memory, used instead of a ``StoredEntry``."""

    position: str
    stream: str
    batch: EventBatch
    route: str = ""

    @property
    def kind(self) -> str:
        return RecordKind.EVENTS.value

    @cached_property
    def body(self) -> bytes:
        """The bytes that the log would hold for this entry."""
        return self.batch.to_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class TickEntry:
    """An entry with a decoded tick of a derived stream, used instead of a ``StoredEntry``."""

    position: str
    stream: str
    tick: Tick
    body: bytes
    kind: str = RecordKind.TICK.value
    route: str = ""


Entry: TypeAlias = LogEntry | StoredEntry | EventsEntry | TickEntry


class EventGroup:
    """Consecutive entries with events, and with ticks of derived streams, that may be matched together."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the group is so large that matching more entries together would save nothing."""
        return self._size_bytes >= _GROUP_BYTES

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._size_bytes += entry.batch.columns.nbytes if isinstance(entry, EventsEntry) else len(entry.body)

    def take_all(self) -> list[Entry]:
        """Remove all entries from the group and return them."""
        entries, self._entries, self._size_bytes = self._entries, [], 0
        return entries


def quarantine_note(entry: StoredEntry, reason: str) -> StoredEntry:
    """The replacement for a quarantined entry, which a shard turns into a dead letter."""
    body = orjson.dumps({"kind": entry.kind, "size_bytes": len(entry.body), "reason": reason})
    return StoredEntry(position=entry.position, kind=QUARANTINED, stream=entry.stream, route=entry.route, body=body)


def quarantine_reason(body: bytes) -> str:
    """The human-readable reason in the body of a quarantine note."""
    note = orjson.loads(body)
    what = f"the {note['kind']} entry of {note['size_bytes']} bytes"
    return f"{what} was set aside, and is still in the log: {note['reason']}"
