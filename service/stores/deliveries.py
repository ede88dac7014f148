"""The durable queue of webhook deliveries.

A delivery is one alert, correction or deviation on its way to one webhook. It is in the queue from the moment that is
written until the receiver has taken it or it is given up. Who works on one holds a lease: its due time is put behind
the lease, so that a delivery whose worker died comes due again by itself. An outcome counts only while the lease is the
worker's own, except success, which always does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode
from service.stores.webhooks import STATS_KEY, WEBHOOKS_KEY, DeliveredKind, RegisteredWebhook

DUE_KEY = PREFIX + "deliveries:due"
RECORDS_KEY = PREFIX + "deliveries:records"
DEAD_KEY = PREFIX + "deliveries:dead"

Verdict = Literal["delivered", "retry", "dead", "dropped"]

# KEYS: due times, records. ARGV: now, end of the lease, how many.
_CLAIM = """
local claimed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
  local record = redis.call('HGET', KEYS[2], id)
  if record then
    redis.call('ZADD', KEYS[1], ARGV[2], id)
    claimed[#claimed + 1] = {id, record}
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return claimed
"""

# KEYS: due times, records, dead deliveries, webhooks, statistics. ARGV: id, lease, verdict, next due time, new record,
# dead deliveries kept, webhook, status, error, now.
_SETTLE = """
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due then return 0 end
if ARGV[3] ~= 'delivered' and tonumber(due) ~= tonumber(ARGV[2]) then return 0 end
if ARGV[3] == 'retry' then
  redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[5])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
end
if ARGV[3] == 'dead' then
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[6], '*', 'record', ARGV[5])
end
if ARGV[3] ~= 'dropped' and redis.call('HEXISTS', KEYS[4], ARGV[7]) == 1 then
  if ARGV[3] == 'delivered' then
    redis.call('HINCRBY', KEYS[5], 'delivered', 1)
  else
    redis.call('HINCRBY', KEYS[5], 'failed_attempts', 1)
  end
  if ARGV[3] == 'dead' then redis.call('HINCRBY', KEYS[5], 'dead', 1) end
  redis.call('HSET', KEYS[5], 'last_status', ARGV[8], 'last_error', ARGV[9], 'last_attempt_us', ARGV[10])
end
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One alert, correction or deviation on its way to one webhook.

    Attributes:
        alert: Id of what is delivered, mostly an alert.
        attempts: Failed attempts so far.
        queued_us: When it was written.
        lease_us: Until when it is the claimer's.
        body: What is delivered, as JSON; None for an alert, which the alert log holds.
    """

    id: str
    webhook: str
    alert: str
    attempts: int
    queued_us: int
    lease_us: int
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one attempt ended.

    Attributes:
        verdict: ``delivered``; ``retry`` at ``next_us``; ``dead``: given up; ``dropped``: nobody wants it any more.
        at_us: When.
        status: HTTP status, if there was an answer.
        error: Why it failed.
        next_us: When the next attempt is due, for ``retry``.
    """

    verdict: Verdict
    at_us: int
    status: int | None = None
    error: str | None = None
    next_us: int | None = None


class DeliveryStore:
    """The queue.

    Args:
        client: Where it is.
        dead_kept: About so many deliveries that were given up are kept for inspection.
    """

    def __init__(self, client: Client, *, dead_kept: int = 10_000) -> None:
        self._client = client
        self._dead_kept = dead_kept
        self._claim = register(client, _CLAIM)
        self._settle = register(client, _SETTLE)

    def claim(self, now_us: int, lease_us: int, limit: int) -> list[Delivery]:
        """Take deliveries that are due, the longest due first, for ``lease_us`` microseconds."""
        end_us = now_us + lease_us
        found = cast("list[tuple[bytes, bytes]]", self._claim([DUE_KEY, RECORDS_KEY], [now_us, end_us, limit]))
        return [
            Delivery(id=id_.decode(), lease_us=end_us, **decode(record, f"the delivery {id_.decode()}"))
            for id_, record in found
        ]

    def settle(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Record how an attempt ended.

        Returns:
            Whether it counted: not when the lease had run out and another worker has the delivery.
        """
        if (outcome.verdict == "retry") != (outcome.next_us is not None):
            raise ValueError("a retry, and only a retry, has a next due time")
        attempts = delivery.attempts + (outcome.verdict in ("retry", "dead"))
        end = {"status": outcome.status, "error": outcome.error, "given_up_us": outcome.at_us}
        record = encode(
            webhook=delivery.webhook,
            alert=delivery.alert,
            attempts=attempts,
            queued_us=delivery.queued_us,
            **_carried(delivery.body),
            **(end if outcome.verdict == "dead" else {}),
        )
        return bool(
            self._settle(
                [DUE_KEY, RECORDS_KEY, DEAD_KEY, WEBHOOKS_KEY, STATS_KEY + delivery.webhook],
                [
                    delivery.id,
                    delivery.lease_us,
                    outcome.verdict,
                    outcome.next_us or 0,
                    record,
                    self._dead_kept,
                    delivery.webhook,
                    "" if outcome.status is None else outcome.status,
                    outcome.error or "",
                    outcome.at_us,
                ],
            )
        )

    def queued(self) -> int:
        """How many deliveries are in the queue, those under a lease included."""
        return self._client.zcard(DUE_KEY)

    def dead(self, limit: int) -> list[dict[str, Any]]:
        """The latest deliveries that were given up, newest first."""
        found = cast("list[tuple[bytes, dict[bytes, bytes]]]", self._client.xrevrange(DEAD_KEY, count=limit))
        return [decode(fields[b"record"], "a dead delivery") for _, fields in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverable:
    """What webhooks may want.

    Attributes:
        kind: What it is.
        id: Its own id.
        stream: Where it is from.
        pattern: Of which pattern; None for a deviation.
        body: As ``Delivery.body``.
    """

    kind: DeliveredKind
    id: str
    stream: str
    pattern: str | None
    body: str | None = None


def deliveries_of(item: Deliverable, webhooks: Sequence[RegisteredWebhook], now_us: int) -> list[dict[str, str]]:
    """Id and record of a new delivery for each webhook that wants it; a script of another store writes them."""
    return [
        {
            "id": f"{webhook.id}:{item.id}",
            "record": encode(
                webhook=webhook.id, alert=item.id, attempts=0, queued_us=now_us, **_carried(item.body)
            ).decode(),
        }
        for webhook in webhooks
        if webhook.wants(item.kind, item.stream, item.pattern)
    ]


def _carried(body: str | None) -> Mapping[str, str]:
    return {} if body is None else {"body": body}
