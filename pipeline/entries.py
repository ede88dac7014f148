"""One entry of a shard's log, as it was stored and before anyone judges it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry as the log returned it."""

    position: str
    kind: str
    stream: str
    body: bytes
