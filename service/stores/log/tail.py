"""The newest part of the event log, read backwards and without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from redis.exceptions import ResponseError

from service.stores.connection import Client
from service.stores.log.event_log import log_entry
from streams import LogEntry, log_key

_PAGE_ENTRIES = 256


class LogTail:
    """Reads the log from its end."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def newest_first(self, shard: int, since_ms: int = 0) -> Iterator[LogEntry]:
        """The present entries of a shard, newest first; none that came before ``since_ms``, by the clock of Redis."""
        until = "+"
        while page := cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrevrange(log_key(shard), max=until, min=str(since_ms), count=_PAGE_ENTRIES),
        ):
            for position, fields in page:
                yield log_entry(position, fields)
            until = "(" + page[-1][0].decode()

    def is_whole(self, shard: int) -> bool:
        """Whether nothing of a shard has been trimmed yet; also False if the server does not report it."""
        try:
            found = self._client.xinfo_stream(log_key(shard))
        except ResponseError:  # the shard has no entries yet
            return True
        return bool(found.get("entries-added") == found["length"])
