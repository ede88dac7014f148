"""Control records that change nothing registered: announcements about event time and about the end of traces."""

from __future__ import annotations

import uuid
from typing import Any

from service.stores.connection import PREFIX, Client, register
from service.stores.log.event_log import EventLog
from service.stores.log.routes import ROUTES_KEY, require_there
from streams import LAYOUT_KEY, ControlRecord, encode_control, key_hash, log_key, shard_of

_TOKEN_MS = 60_000


class Announcements:
    """Appends announcements to the shards of a log."""

    def __init__(self, client: Client, log: EventLog) -> None:
        self._log = log
        self._append = register(client, "log/append_control")

    def append(self, stream: str, record: ControlRecord, key: str | None = None) -> int:
        """Append a record to every shard or to the shard of a key, all or nothing; returns the number of shards."""
        token = f"{PREFIX}announcement:{uuid.uuid4().hex}"

        reached = 0

        def append(shards: int) -> Any:
            nonlocal reached
            chosen = range(shards) if key is None else [shard_of(key_hash(key), shards)]
            reached = len(chosen)
            return self._append(
                call=token,
                layout=LAYOUT_KEY,
                routes=ROUTES_KEY,
                shards=[log_key(shard) for shard in chosen],
                call_ms=_TOKEN_MS,
                kind=record.KIND.value,
                stream=stream,
                body=encode_control(record),
                shard_count=shards,
            )

        require_there(stream, self._log.layout.fitted(append))
        return reached
