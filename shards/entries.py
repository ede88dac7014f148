"""One entry of a shard's log, as it was stored and before anyone judges it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import orjson

from streams import EventBatch, RecordKind

# The kind of what stands in the place of an entry that broke the matcher; the log itself has none.
QUARANTINED = "quarantined"
_GROUP_BYTES = 8_000_000  # some 65,536 events; from here on more at once save nothing


class Entry(Protocol):
    """``streams.LogEntry``, or an entry whose kind may be none that this release knows."""

    @property
    def position(self) -> str:
        """Place in the shard."""
        ...

    @property
    def kind(self) -> str:
        """A value of ``streams.RecordKind``, it is hoped."""
        ...

    @property
    def stream(self) -> str:
        """Name of the stream."""
        ...

    @property
    def body(self) -> bytes:
        """A batch or a control record."""
        ...

    @property
    def route(self) -> str:
        """Of events: the further key whose traces they are for; empty for the stream's correlation key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry as the log returned it."""

    position: str
    kind: str
    stream: str
    body: bytes
    route: str = ""


@dataclass(frozen=True, kw_only=True)
class EventsEntry:
    """Events that were never bytes, or are so no more, in the place of an entry of them."""

    position: str
    stream: str
    batch: EventBatch
    route: str = ""

    @property
    def kind(self) -> str:
        """That of events."""
        return RecordKind.EVENTS.value

    @cached_property
    def body(self) -> bytes:
        """What the entry would hold in the log."""
        return self.batch.to_bytes()


class EventGroup:
    """Entries of events, one after the other in the log, that may be matched together."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether more at once save nothing."""
        return self._size_bytes >= _GROUP_BYTES

    def add(self, entry: Entry) -> None:
        """One more entry."""
        self._entries.append(entry)
        self._size_bytes += entry.batch.columns.nbytes if isinstance(entry, EventsEntry) else len(entry.body)

    def taken(self) -> list[Entry]:
        """All entries; the group is empty then."""
        found, self._entries, self._size_bytes = self._entries, [], 0
        return found


def quarantine_note(entry: StoredEntry, reason: str) -> StoredEntry:
    """What stands in the place of an entry that is set aside; a shard makes a dead letter of it."""
    body = orjson.dumps({"kind": entry.kind, "size_bytes": len(entry.body), "reason": reason})
    return StoredEntry(position=entry.position, kind=QUARANTINED, stream=entry.stream, route=entry.route, body=body)


def quarantine_reason(body: bytes) -> str:
    """The sentence for people in the body of such a note."""
    told = orjson.loads(body)
    what = f"the {told['kind']} entry of {told['size_bytes']} bytes"
    return f"{what} was set aside, and is still in the log: {told['reason']}"
