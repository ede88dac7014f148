"""The alert log: every alert once, and its webhook deliveries queued with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from service.errors import RecordFormatError, UnknownAlert
from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import NUMBER, require_cursor
from service.stores.deliveries import DUE_KEY, RECORDS_KEY, Deliverable, deliveries_of
from service.stores.recent import Row
from service.stores.records import FORMAT_VERSION
from service.stores.severities import USUAL_SEVERITY
from service.stores.webhooks import RegisteredWebhook

BODIES_KEY = PREFIX + "alerts:bodies"
NUMBER_KEY = PREFIX + "alerts:number"
INDEX_KEY = PREFIX + "alerts:index"
COUNTS_KEY = PREFIX + "alerts:counts"

_CHUNK_ALERTS = 200
_HEAD = b'{"format":%d,"alert":' % FORMAT_VERSION
_TAIL = b"}"

# KEYS: bodies, running number, deliveries by due time, delivery records, counters. ARGV: now in us, a JSON list of
# alerts with their indexes, deliveries and counters. An alert that is there already is passed over with all that
# belongs to it.
_APPEND = """
local added = 0
for _, alert in ipairs(cjson.decode(ARGV[2])) do
  if redis.call('HSETNX', KEYS[1], alert.id, alert.body) == 1 then
    added = added + 1
    local place = string.format('%d-0', redis.call('INCR', KEYS[2]))
    redis.call('HINCRBY', KEYS[5], alert.counter, 1)
    for _, index in ipairs(alert.indexes) do
      redis.call('XADD', index, place, 'id', alert.id)
    end
    for _, delivery in ipairs(alert.deliveries) do
      redis.call('HSET', KEYS[4], delivery.id, delivery.record)
      redis.call('ZADD', KEYS[3], ARGV[1], delivery.id)
    end
  end
end
return added
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPage:
    """Some alerts, oldest first.

    Attributes:
        alerts: As plain JSON.
        after: Cursor behind the last of them; the one that was given, when there are none.
    """

    alerts: list[dict[str, Any]]
    after: str


class AlertStore:
    """The alert log."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._append = register(client, _APPEND)

    def append(self, rows: Sequence[Row], webhooks: Sequence[RegisteredWebhook], now_us: int) -> int:
        """Write alerts that are not there yet, each with one delivery per webhook that wants it.

        Args:
            rows: Alerts in the order in which they shall be listed.
            webhooks: Those registered now.
            now_us: When the first attempt of the deliveries is due.

        Returns:
            How many were new.
        """
        keys = [BODIES_KEY, NUMBER_KEY, DUE_KEY, RECORDS_KEY, COUNTS_KEY]
        added = 0
        for start in range(0, len(rows), _CHUNK_ALERTS):
            chunk = [_packed(row, webhooks, now_us) for row in rows[start : start + _CHUNK_ALERTS]]
            added += int(self._append(keys, [now_us, orjson.dumps(chunk)]))
        return added

    def body(self, alert_id: str) -> bytes:
        """The alert as JSON, byte for byte as it was written.

        Raises:
            UnknownAlert: There is none of that id.
        """
        stored = cast("bytes | None", self._client.hget(BODIES_KEY, alert_id))
        if stored is None:
            raise UnknownAlert(f"there is no alert {alert_id!r}", alert=alert_id)
        return _unwrapped(stored, alert_id)

    def get(self, alert_id: str) -> dict[str, Any]:
        """The alert as plain JSON.

        Raises:
            UnknownAlert: There is none of that id.
        """
        return cast("dict[str, Any]", orjson.loads(self.body(alert_id)))

    def counts(self) -> dict[tuple[str, str], int]:
        """How many alerts there are, by stream and pattern."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(COUNTS_KEY))
        return {cast("tuple[str, str]", tuple(orjson.loads(name))): int(count) for name, count in sorted(found.items())}

    def page(
        self, *, stream: str | None = None, pattern: str | None = None, after: str = "0", limit: int = 100
    ) -> AlertPage:
        """Alerts behind a cursor, oldest first.

        Raises:
            InvalidCursor: ``after`` is not a cursor.
        """
        require_cursor(after, NUMBER)
        found = cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrange(_index(stream, pattern), min=f"({after}-0", max="+", count=limit),
        )
        if not found:
            return AlertPage(alerts=[], after=after)
        ids = [fields[b"id"] for _, fields in found]
        bodies = cast("list[bytes]", self._client.hmget(BODIES_KEY, cast("list[str]", ids)))
        alerts = [orjson.loads(_unwrapped(body, id_.decode())) for id_, body in zip(ids, bodies, strict=True)]
        return AlertPage(alerts=alerts, after=found[-1][0].partition(b"-")[0].decode())


def _packed(row: Row, webhooks: Sequence[RegisteredWebhook], now_us: int) -> Mapping[str, Any]:
    alert = orjson.loads(row.body)
    pattern = alert["pattern"]
    indexes = [_index(None, None), _index(row.stream, None), _index(None, pattern), _index(row.stream, pattern)]
    severity = alert.get("severity", USUAL_SEVERITY)
    item = Deliverable(kind="alert", id=row.id, stream=row.stream, pattern=pattern, severity=severity)
    deliveries = deliveries_of(item, webhooks, now_us)
    body = (_HEAD + row.body + _TAIL).decode()
    counter = orjson.dumps([row.stream, pattern]).decode()
    return {"id": row.id, "body": body, "indexes": indexes, "deliveries": deliveries, "counter": counter}


def _index(stream: str | None, pattern: str | None) -> str:
    return INDEX_KEY + "".join(
        f":{kind}:{name}" for kind, name in (("stream", stream), ("pattern", pattern)) if name is not None
    )


def _unwrapped(stored: bytes, alert_id: str) -> bytes:
    if not stored.startswith(_HEAD):
        raise RecordFormatError(
            f"the stored alert {alert_id!r} has another format than {FORMAT_VERSION}, which this release reads"
        )
    return stored[len(_HEAD) : -len(_TAIL)]
