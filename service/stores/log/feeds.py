"""The progress of feeds: one mark per feed, moved by the script that appends the feed's rows.

A mark names the next row to read. Unlike an idempotency key, a mark never expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from service.stores.connection import PREFIX, Client
from service.stores.records import decode, encode

FEED_STREAMS_KEY = PREFIX + "feed-streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedMark:
    """The row that a feed reads next: index of the micro-batch, index of the row in it, and id of the checkpoint."""

    checkpoint: str
    batch: int = 0
    row: int = 0

    def to_bytes(self) -> bytes:
        """Encode the mark; equal marks have equal bytes."""
        return encode(checkpoint=self.checkpoint, batch=self.batch, row=self.row)

    @classmethod
    def from_bytes(cls, body: bytes) -> FeedMark:
        return cls(**decode(body, "a feed's mark"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStep:
    """A feed's step from one mark to the next; nothing is appended unless the stored mark is ``before``."""

    feed: str
    before: FeedMark
    after: FeedMark

    @property
    def key(self) -> str:
        return mark_key(self.feed)


def mark_key(feed: str) -> str:
    """Redis key of a feed's mark."""
    return f"{PREFIX}feed:{feed}"


class FeedStore:
    """The marks of all feeds."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def mark(self, feed: str) -> FeedMark | None:
        """The mark of a feed; None if the log does not know the feed."""
        body = self._client.get(mark_key(feed))
        return None if body is None else FeedMark.from_bytes(cast(bytes, body))

    def begin(self, feed: str, mark: FeedMark, stream: str) -> None:
        """Store the stream of a feed, and the feed's first mark; an existing mark is kept."""
        self._client.hset(FEED_STREAMS_KEY, feed, encode(stream=stream))
        self._client.set(mark_key(feed), mark.to_bytes(), nx=True)
