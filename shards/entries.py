"""One entry of a shard's log, as it was stored and before anyone judges it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import orjson

from streams import EventBatch, RecordKind

# The kind of what stands in the place of an entry that broke the matcher; the log itself has none.
QUARANTINED = "quarantined"


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


def quarantine_note(entry: StoredEntry, reason: str) -> StoredEntry:
    """What stands in the place of an entry that is set aside; a shard makes a dead letter of it."""
    body = orjson.dumps({"kind": entry.kind, "size_bytes": len(entry.body), "reason": reason})
    return StoredEntry(position=entry.position, kind=QUARANTINED, stream=entry.stream, route=entry.route, body=body)


def quarantine_reason(body: bytes) -> str:
    """The sentence for people in the body of such a note."""
    told = orjson.loads(body)
    what = f"the {told['kind']} entry of {told['size_bytes']} bytes"
    return f"{what} was set aside, and is still in the log: {told['reason']}"
