"""The ids of accepted events, by which repeated events are dropped.

The digests of a stream's ids are stored in a sequence of sets. When the newest set has a quarter of the ids to be
retained, a new set is started, and the oldest of six sets is removed. So a stream uses bounded memory, and retains by
default the last million ids for one day. The script that appends events also reads and writes the ids, so an id is
stored if and only if its event was appended.
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
    """Return the digest of an event's identity: the source and id of a CloudEvent, or the id of a plain object."""
    return blake2b(f"{len(source)}:{source}{event_id}".encode(), digest_size=DIGEST_BYTES).digest()


def packed(digests: Sequence[bytes | None]) -> bytes:
    """Join digests to one byte string. Items that are None are left out."""
    return b"".join(digest for digest in digests if digest is not None)


def known_rows(digests: Sequence[bytes | None], numbers: Sequence[int]) -> list[int]:
    """Return the rows of the repeated events of a batch, in ascending order.

    ``numbers`` is the reply of the script that appends events. A number is the index of a repeated event among the
    events with a digest.
    """
    rows = [row for row, digest in enumerate(digests) if digest is not None]
    return sorted({rows[number] for number in numbers})
