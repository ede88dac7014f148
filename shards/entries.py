"""Entries of a shard's log, before any check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import orjson

from streams import EventBatch, LogEntry, RecordKind, Tick

# Kind of the entry that replaces a quarantined entry; the log itself contains no entries of this kind.
QUARANTINED = "quarantined"
_GROUP_BYTES = 8_000_000  # about 65,536 events; a larger group is not faster


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry as read from the log. This release may not know the entry's kind."""

    position: str
    kind: str
    stream: str
    body: bytes
    route: str = ""


@dataclass(frozen=True, kw_only=True)
class EventsEntry:
    """An entry with an event batch that is already decoded in memory. Entries read from the log are ``StoredEntry``."""

    position: str
    stream: str
    batch: EventBatch
    route: str = ""

    @property
    def kind(self) -> str:
        return RecordKind.EVENTS.value

    @cached_property
    def body(self) -> bytes:
        """The entry's body as the log would store it."""
        return self.batch.to_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class TickEntry:
    """An entry with a tick of a derived stream that is already decoded in memory."""

    position: str
    stream: str
    tick: Tick
    body: bytes
    kind: str = RecordKind.TICK.value
    route: str = ""


Entry: TypeAlias = LogEntry | StoredEntry | EventsEntry | TickEntry


class EventGroup:
    """Consecutive entries that the shard may match together: entries with events, and ticks of derived streams."""

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
    """Create the entry that the shard reads instead of a quarantined entry. The shard makes a dead letter of it."""
    body = orjson.dumps({"kind": entry.kind, "size_bytes": len(entry.body), "reason": reason})
    return StoredEntry(position=entry.position, kind=QUARANTINED, stream=entry.stream, route=entry.route, body=body)


def quarantine_reason(body: bytes) -> str:
    """Return why an entry is quarantined, as a sentence for users. ``body`` is the body of its ``quarantine_note``."""
    note = orjson.loads(body)
    what = f"the {note['kind']} entry of {note['size_bytes']} bytes"
    return f"{what} was set aside, and is still in the log: {note['reason']}"
