"""The ids of events that streams have taken, so that an event that is sent again is not taken again.

Ids are kept as digests in sets, one after the other: when the newest has a quarter of the ids that are to be known, the
next is begun and the oldest of six goes. So the last million ids are known, unless they are older than a day, and a
stream takes a bounded part of Redis' memory. The script that appends events asks and writes here, so an id is known if
and only if its event is in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, cast

from service.stores.connection import PREFIX, Client

EVENT_IDS_KEY = PREFIX + "event-ids:"
DUPLICATES_KEY = PREFIX + "event-duplicates"

DIGEST_BYTES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class IdLimits:
    """How long ids of events are known.

    Attributes:
        kept: At least so many of a stream, unless they are older.
        life_s: At least so long, unless more than that came since.
    """

    kept: int = 1_000_000
    life_s: int = 86_400


def event_digest(source: str, event_id: str) -> bytes:
    """The identity of an event: that of a CloudEvent is source and id, that of a plain object its id."""
    return blake2b(f"{len(source)}:{source}{event_id}".encode(), digest_size=DIGEST_BYTES).digest()


def packed(digests: Sequence[bytes | None]) -> bytes:
    """Digests in one text, those that are None left out."""
    return b"".join(digest for digest in digests if digest is not None)


def known_rows(digests: Sequence[bytes | None], numbers: Sequence[int]) -> list[int]:
    """The rows of what the script says of ``packed`` digests, in their order, each once."""
    rows = [row for row, digest in enumerate(digests) if digest is not None]
    return sorted({rows[number] for number in numbers})


class DuplicateStore:
    """How many events of each stream were dropped as they had been taken before.

    Args:
        client: Where they are counted.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def counts(self) -> dict[str, int]:
        """By stream; streams without one are left out."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(DUPLICATES_KEY))
        return {stream.decode(): int(count) for stream, count in sorted(found.items())}
