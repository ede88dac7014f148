"""Control records that change nothing that is registered: what is known of time and of the end of traces."""

from __future__ import annotations

import uuid
from typing import Any

from service.stores.connection import PREFIX, Client, register
from service.stores.event_log import EventLog
from service.stores.layout import FITTING
from streams import LAYOUT_KEY, ControlRecord, encode_control, key_hash, log_key, shard_of

_TOKEN_MS = 60_000

# KEYS: a key of this call, the layout, then the shards. ARGV: life of that key in ms, kind, stream and body of the
# record, the number of shards. The key keeps the records from being appended twice where Redis' reply was lost and the
# script is sent again.
_APPEND = (
    FITTING
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local unfit = misfit(KEYS[2], ARGV[5])
if unfit then return unfit end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
for i = 3, #KEYS do
  redis.call('XADD', KEYS[i], '*', 'kind', ARGV[2], 'stream', ARGV[3], 'body', ARGV[4])
end
return 1
"""
)


class Announcements:
    """Appends such records.

    Args:
        client: Where the log is.
        log: Its shards.
    """

    def __init__(self, client: Client, log: EventLog) -> None:
        self._log = log
        self._append = register(client, _APPEND)

    def append(self, stream: str, record: ControlRecord, key: str | None = None) -> None:
        """Append a record, all or nothing: to every shard, or to that of a correlation key.

        Raises:
            LogResharding: The log is being divided anew.
        """
        token = f"{PREFIX}announcement:{uuid.uuid4().hex}"
        arguments: list[str | bytes | int] = [_TOKEN_MS, record.KIND.value, stream, encode_control(record)]

        def append(shards: int) -> Any:
            chosen = range(shards) if key is None else [shard_of(key_hash(key), shards)]
            return self._append([token, LAYOUT_KEY, *map(log_key, chosen)], [*arguments, shards])

        self._log.layout.fitted(append)
