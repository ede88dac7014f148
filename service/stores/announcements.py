"""Control records that change nothing that is registered: what is known of time and of the end of traces."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from service.stores.connection import PREFIX, Client, register
from service.stores.event_log import EventLog
from streams import KINDS, ControlRecord, encode_control, log_key

_TOKEN_MS = 60_000

# KEYS: a key of this call, then the shards. ARGV: life of that key in ms, kind, stream and body of the record.
# The key keeps the records from being appended twice where Redis' reply was lost and the script is sent again.
_APPEND = """
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[1]) then return 0 end
for i = 2, #KEYS do
  redis.call('XADD', KEYS[i], '*', 'kind', ARGV[2], 'stream', ARGV[3], 'body', ARGV[4])
end
return 1
"""


class Announcements:
    """Appends such records.

    Args:
        client: Where the log is.
        log: Its shards.
    """

    def __init__(self, client: Client, log: EventLog) -> None:
        self._log = log
        self._append = register(client, _APPEND)

    def append(self, stream: str, record: ControlRecord, shards: Iterable[int] | None = None) -> None:
        """Append a record to some shards, all or nothing; to every shard, unless some are named."""
        keys = self._log.keys() if shards is None else [log_key(shard) for shard in shards]
        token = f"{PREFIX}announcement:{uuid.uuid4().hex}"
        self._append([token, *keys], [_TOKEN_MS, KINDS[type(record)].value, stream, encode_control(record)])
