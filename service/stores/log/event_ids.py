"""The ids of events that streams have accepted; an event with a known id is dropped as a repetition.

Ids are stored as digests in a sequence of sets: when the newest set has a quarter of the ids to be kept, the next set
is begun and the oldest of six is removed. So the last million ids are known, unless they are older than a day, and a
stream uses a bounded part of Redis' memory. The script that appends events reads and writes the ids, so an id is known
if and only if its event was appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from service.stores.connection import PREFIX

EVENT_IDS_KEY = PREFIX + "event-ids:"
DUPLICATES_KEY = PREFIX + "event-duplicates"

DIGEST_BYTES: Final = 12


def event_digest(source: str, event_id: str) -> bytes:
    """The digest of an event's identity: source and id of a CloudEvent, the id of a plain object."""
    return blake2b(f"{len(source)}:{source}{event_id}".encode(), digest_size=DIGEST_BYTES).digest()


def packed(digests: Sequence[bytes | None]) -> bytes:
    """Digests as one byte string; None is left out."""
    return b"".join(digest for digest in digests if digest is not None)


def known_rows(digests: Sequence[bytes | None], numbers: Sequence[int]) -> list[int]:
    """The rows of events whose ids the script knows, ascending; ``numbers``: their indexes among rows with a digest."""
    rows = [row for row, digest in enumerate(digests) if digest is not None]
    return sorted({rows[number] for number in numbers})
