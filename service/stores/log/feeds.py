"""The progress of feeds, stored as one mark per feed.

A mark is the row that the feed reads next. The script that appends rows of the feed also advances the mark. Unlike an
idempotency key, a mark never expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from service.stores.connection import PREFIX, Client
from service.stores.records import decode, encode

FEED_STREAMS_KEY = PREFIX + "feed-streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedMark:
    """The row that a feed reads next.

    Attributes:
        checkpoint: Id of the feed's checkpoint.
        batch: Index of the micro-batch.
        row: Index of the row in the micro-batch.
    """

    checkpoint: str
    batch: int = 0
    row: int = 0

    def to_bytes(self) -> bytes:
        """Encode the mark. Equal marks have equal bytes, so that scripts can compare them."""
        return encode(checkpoint=self.checkpoint, batch=self.batch, row=self.row)

    @classmethod
    def from_bytes(cls, body: bytes) -> FeedMark:
        return cls(**decode(body, "a feed's mark"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStep:
    """A step of a feed from one mark to the next. Its rows are appended only if the stored mark is ``before``."""

    feed: str
    before: FeedMark
    after: FeedMark

    @property
    def key(self) -> str:
        return mark_key(self.feed)


def mark_key(feed: str) -> str:
    """Return the Redis key of a feed's mark."""
    return f"{PREFIX}feed:{feed}"


class FeedStore:
    """Stores the marks of feeds."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def mark(self, feed: str) -> FeedMark | None:
        """Return the mark of a feed, or None if the feed is unknown."""
        body = self._client.get(mark_key(feed))
        return None if body is None else FeedMark.from_bytes(cast(bytes, body))

    def begin(self, feed: str, mark: FeedMark, stream: str) -> None:
        """Store the stream and the first mark of a feed. An existing mark is not changed."""
        self._client.hset(FEED_STREAMS_KEY, feed, encode(stream=stream))
        self._client.set(mark_key(feed), mark.to_bytes(), nx=True)
