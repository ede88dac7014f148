"""The durable queue of webhook deliveries: one for each webhook, and turns among them.

A delivery is in the queue from the moment that what it is about is written until the receiver has taken it or it is
given up. Who works on one holds a lease; when that runs out, as the worker died, the delivery is due again. An outcome
counts only while the lease is the worker's own, except success, which always does.

Webhooks take turns: each call serves every webhook that has something due in rounds of one, those first that have
waited longest for their turn. So a webhook with a hundred thousand due deliveries holds nobody up. One webhook has at
most ``per_target`` attempts on their way. After ``circuit_failures`` failed attempts in a row its circuit is open: its
deliveries wait, and one attempt per ``circuit_pause_us`` tries whether the receiver is back; the first success closes
the circuit. The deliveries of a disabled webhook wait until it is enabled; those of a deleted one are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from service.stores.connection import PREFIX, Client, register
from service.stores.deliveries import DUE_KEY, RECORDS_KEY, Delivery, Outcome, read_delivery
from service.stores.records import encode
from service.stores.webhooks import (
    CIRCUIT_KEY,
    GIVEN_UP_KEY,
    GIVEN_UP_RECORDS_KEY,
    LOG_KEY,
    STATS_KEY,
    TURNS_KEY,
    WEBHOOKS_KEY,
)

WAITING_KEY = PREFIX + "deliveries:waiting:"
SENDING_KEY = PREFIX + "deliveries:sending:"

_MOVED_AT_ONCE = 1_000
_WEBHOOKS_AT_ONCE = 200

# When it is worth looking at a webhook again; nil: never. A half-open circuit has room for one attempt.
_NEXT_TURN = """
local function room_of(waiting, sending, circuit, cap, threshold)
  local state = redis.call('HMGET', circuit, 'failures', 'until_us')
  local is_open = tonumber(state[1] or '0') >= tonumber(threshold)
  local room = (is_open and 1 or tonumber(cap)) - redis.call('ZCARD', sending)
  return room, is_open and tonumber(state[2] or '0') or 0
end
local function next_turn(waiting, sending, circuit, cap, threshold)
  local room, opens_us = room_of(waiting, sending, circuit, cap, threshold)
  local due = tonumber(redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2])
  local lease = tonumber(redis.call('ZRANGE', sending, 0, 0, 'WITHSCORES')[2])
  local turn = nil
  if due and room > 0 then turn = math.max(due, opens_us) end
  if lease and (not turn or lease < turn) then turn = lease end
  return turn
end
local function set_turn(turns, webhook, turn)
  if turn then redis.call('ZADD', turns, turn, webhook) else redis.call('ZREM', turns, webhook) end
end
"""

# KEYS: new deliveries, records, turns, webhooks. ARGV: now, end of the lease, how many, most that wait for one webhook,
# attempts at one webhook, failures that open a circuit, then the beginnings of the keys of what waits, of what is being
# sent, of circuits, of statistics, of given-up deliveries and of their records, and how many of these are kept.
_CLAIM = (
    _NEXT_TURN
    + f"local most_moved, most_webhooks = {_MOVED_AT_ONCE}, {_WEBHOOKS_AT_ONCE}"
    + """
local now, lease, limit = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local function give_up_newest(webhook, id)
  local record = redis.call('HGET', KEYS[2], id)
  redis.call('HDEL', KEYS[2], id)
  if not record or redis.call('HEXISTS', KEYS[4], webhook) == 0 then return end
  redis.call('ZADD', ARGV[11] .. webhook, ARGV[1], id)
  redis.call('HSET', ARGV[12] .. webhook, id, record)
  redis.call('HINCRBY', ARGV[10] .. webhook, 'dead', 1)
  redis.call('HSET', ARGV[10] .. webhook, 'last_error', 'too many deliveries wait for this webhook')
  local over = redis.call('ZCARD', ARGV[11] .. webhook) - tonumber(ARGV[13])
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', ARGV[11] .. webhook, 0, over - 1)) do
      redis.call('ZREM', ARGV[11] .. webhook, old)
      redis.call('HDEL', ARGV[12] .. webhook, old)
    end
  end
end
local function take_new()
  local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, most_moved)
  for i = 1, #found, 2 do
    local id, due = found[i], found[i + 1]
    local webhook = string.match(id, '^[^:]*')
    if redis.call('ZCARD', ARGV[7] .. webhook) < tonumber(ARGV[4]) then
      redis.call('ZADD', ARGV[7] .. webhook, due, id)
      local turn = redis.call('ZSCORE', KEYS[3], webhook)
      if not turn or tonumber(turn) > tonumber(due) then redis.call('ZADD', KEYS[3], due, webhook) end
    else
      give_up_newest(webhook, id)
    end
    redis.call('ZREM', KEYS[1], id)
  end
end
local function drop_some(webhook)
  local waiting, sending = ARGV[7] .. webhook, ARGV[8] .. webhook
  for _, id in ipairs(redis.call('ZRANGE', waiting, 0, most_moved - 1)) do
    redis.call('ZREM', waiting, id)
    redis.call('HDEL', KEYS[2], id)
  end
  for _, id in ipairs(redis.call('ZRANGE', sending, 0, -1)) do redis.call('HDEL', KEYS[2], id) end
  redis.call('DEL', sending)
  set_turn(KEYS[3], webhook, redis.call('ZCARD', waiting) > 0 and now or nil)
end
local function offer(webhook)
  local waiting, sending, circuit = ARGV[7] .. webhook, ARGV[8] .. webhook, ARGV[9] .. webhook
  local lapsed = redis.call('ZRANGEBYSCORE', sending, '-inf', ARGV[1], 'WITHSCORES')
  for i = 1, #lapsed, 2 do
    redis.call('ZREM', sending, lapsed[i])
    redis.call('ZADD', waiting, lapsed[i + 1], lapsed[i])
  end
  local room, opens_us = room_of(waiting, sending, circuit, ARGV[5], ARGV[6])
  if room < 1 or opens_us > now then return {} end
  return redis.call('ZRANGEBYSCORE', waiting, '-inf', ARGV[1], 'LIMIT', 0, math.min(room, limit))
end
take_new()
local offers = {}
for _, webhook in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[1], 'LIMIT', 0, most_webhooks)) do
  local record = redis.call('HGET', KEYS[4], webhook)
  if not record then
    drop_some(webhook)
  elseif not cjson.decode(record).is_enabled then
    redis.call('ZREM', KEYS[3], webhook)
  else
    offers[#offers + 1] = {webhook = webhook, ids = offer(webhook), taken = 0}
  end
end
local claimed, is_any = {}, true
while is_any and #claimed < limit do
  is_any = false
  for _, one in ipairs(offers) do
    local id = one.ids[one.taken + 1]
    if id and #claimed < limit then
      is_any = true
      one.taken = one.taken + 1
      redis.call('ZREM', ARGV[7] .. one.webhook, id)
      local record = redis.call('HGET', KEYS[2], id)
      if record then
        redis.call('ZADD', ARGV[8] .. one.webhook, lease, id)
        claimed[#claimed + 1] = {id, record}
      end
    end
  end
end
for _, one in ipairs(offers) do
  local webhook = one.webhook
  if one.taken > 0 or #one.ids == 0 then
    local turn = next_turn(ARGV[7] .. webhook, ARGV[8] .. webhook, ARGV[9] .. webhook, ARGV[5], ARGV[6])
    set_turn(KEYS[3], webhook, turn and math.max(turn, now))
  end
end
return claimed
"""
)

# KEYS: what waits, what is being sent, records, webhooks, statistics, circuit, log, given-up deliveries, their records,
# turns. ARGV: id, lease, verdict, next due time, new record, webhook, status, error, now, log entry, log entries kept,
# given-up deliveries kept, attempts at one webhook, failures that open a circuit, its pause in us, the body that goes
# into the log.
_SETTLE = (
    _NEXT_TURN
    + """
local id, verdict, webhook, now = ARGV[1], ARGV[3], ARGV[6], tonumber(ARGV[9])
local lease = redis.call('ZSCORE', KEYS[2], id)
if verdict == 'delivered' then
  if not lease and not redis.call('ZSCORE', KEYS[1], id) then return 0 end
elseif not lease or tonumber(lease) ~= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZREM', KEYS[1], id)
redis.call('ZREM', KEYS[2], id)
if verdict == 'retry' then
  redis.call('ZADD', KEYS[1], ARGV[4], id)
  redis.call('HSET', KEYS[3], id, ARGV[5])
else
  redis.call('HDEL', KEYS[3], id)
end
if verdict ~= 'dropped' and redis.call('HEXISTS', KEYS[4], webhook) == 1 then
  if verdict == 'dead' then
    redis.call('ZADD', KEYS[8], ARGV[9], id)
    redis.call('HSET', KEYS[9], id, ARGV[5])
    local over = redis.call('ZCARD', KEYS[8]) - tonumber(ARGV[12])
    if over > 0 then
      for _, old in ipairs(redis.call('ZRANGE', KEYS[8], 0, over - 1)) do
        redis.call('ZREM', KEYS[8], old)
        redis.call('HDEL', KEYS[9], old)
      end
    end
    redis.call('HINCRBY', KEYS[5], 'dead', 1)
  end
  if verdict == 'delivered' then
    redis.call('HINCRBY', KEYS[5], 'delivered', 1)
    redis.call('DEL', KEYS[6])
  else
    redis.call('HINCRBY', KEYS[5], 'failed_attempts', 1)
    redis.call('HSETNX', KEYS[6], 'since_us', ARGV[9])
    if redis.call('HINCRBY', KEYS[6], 'failures', 1) >= tonumber(ARGV[14]) then
      redis.call('HSET', KEYS[6], 'until_us', string.format('%.0f', now + tonumber(ARGV[15])))
    end
  end
  redis.call('HSET', KEYS[5], 'last_status', ARGV[7], 'last_error', ARGV[8], 'last_attempt_us', ARGV[9])
  redis.call('XADD', KEYS[7], 'MAXLEN', '~', ARGV[11], '*', 'record', ARGV[10], 'body', ARGV[16])
end
local turn = redis.call('ZSCORE', KEYS[10], webhook)
if not turn or tonumber(turn) > now then
  local found = next_turn(KEYS[1], KEYS[2], KEYS[6], ARGV[13], ARGV[14])
  set_turn(KEYS[10], webhook, found and math.max(found, now))
end
return 1
"""
)

# KEYS: what waits, what is being sent, records, given-up deliveries, their records, turns. ARGV: webhook, now, then ids
# and fresh records. Those that are being sent stay as they are.
_AGAIN = """
local queued = 0
for i = 3, #ARGV, 2 do
  if not redis.call('ZSCORE', KEYS[2], ARGV[i]) then
    redis.call('HSETNX', KEYS[3], ARGV[i], ARGV[i + 1])
    redis.call('ZADD', KEYS[1], ARGV[2], ARGV[i])
    redis.call('ZREM', KEYS[4], ARGV[i])
    redis.call('HDEL', KEYS[5], ARGV[i])
    queued = queued + 1
  end
end
if redis.call('ZCARD', KEYS[1]) > 0 then redis.call('ZADD', KEYS[6], ARGV[2], ARGV[1]) end
return queued
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """How webhooks share the deliverer.

    Attributes:
        per_target: Attempts at one webhook at the same time.
        circuit_failures: So many failed attempts in a row open a webhook's circuit.
        circuit_pause_us: An open circuit lets one attempt through in so many microseconds.
        given_up_kept: Deliveries of one webhook that were given up, kept to be sent again.
        log_kept: About so many attempts of one webhook are listed.
        most_waiting: Deliveries that may wait for one webhook; more are given up at once.
    """

    per_target: int = 8
    circuit_failures: int = 10
    circuit_pause_us: int = 60_000_000
    given_up_kept: int = 10_000
    log_kept: int = 1_000
    most_waiting: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """How a webhook's attempts fared since the last success.

    Attributes:
        failures: Failed attempts since then.
        since_us: When the first of them ended; None: there are none.
        until_us: No attempt is made before this, where the circuit is open; None where it is closed.
    """

    failures: int = 0
    since_us: int | None = None
    until_us: int | None = None


class DeliveryStore:
    """The queue.

    Args:
        client: Where it is.
        rules: How webhooks share it.
    """

    def __init__(self, client: Client, rules: QueueRules | None = None) -> None:
        self._client = client
        self._rules = rules or QueueRules()
        self._claim = register(client, _CLAIM)
        self._settle = register(client, _SETTLE)
        self._again = register(client, _AGAIN)

    def claim(self, now_us: int, lease_us: int, limit: int) -> list[Delivery]:
        """Take deliveries that are due, for ``lease_us`` microseconds, from each webhook in turn.

        Of one webhook, the longest due come first.
        """
        end_us = now_us + lease_us
        rules = self._rules
        found = cast(
            "list[tuple[bytes, bytes]]",
            self._claim(
                [DUE_KEY, RECORDS_KEY, TURNS_KEY, WEBHOOKS_KEY],
                [
                    now_us,
                    end_us,
                    limit,
                    rules.most_waiting,
                    rules.per_target,
                    rules.circuit_failures,
                    WAITING_KEY,
                    SENDING_KEY,
                    CIRCUIT_KEY,
                    STATS_KEY,
                    GIVEN_UP_KEY,
                    GIVEN_UP_RECORDS_KEY,
                    rules.given_up_kept,
                ],
            ),
        )
        return [read_delivery(id_.decode(), record, end_us) for id_, record in found]

    def settle(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Record how an attempt ended.

        Returns:
            Whether it counted: not when the lease had run out and another worker has the delivery.
        """
        if (outcome.verdict == "retry") != (outcome.next_us is not None):
            raise ValueError("a retry, and only a retry, has a next due time")
        attempts = delivery.attempts + (outcome.verdict in ("retry", "dead"))
        one, rules = delivery.webhook, self._rules
        keys = [WAITING_KEY + one, SENDING_KEY + one, RECORDS_KEY, WEBHOOKS_KEY, STATS_KEY + one, CIRCUIT_KEY + one]
        keys += [LOG_KEY + one, GIVEN_UP_KEY + one, GIVEN_UP_RECORDS_KEY + one, TURNS_KEY]
        is_final = outcome.verdict != "retry"
        return bool(
            self._settle(
                keys,
                [
                    delivery.id,
                    delivery.lease_us,
                    outcome.verdict,
                    outcome.next_us or 0,
                    delivery.record(attempts),
                    one,
                    "" if outcome.status is None else outcome.status,
                    outcome.error or "",
                    outcome.at_us,
                    encode(**_entry(delivery, outcome)),
                    rules.log_kept,
                    rules.given_up_kept,
                    rules.per_target,
                    rules.circuit_failures,
                    rules.circuit_pause_us,
                    (delivery.body or "") if is_final else "",
                ],
            )
        )

    def send_again(self, webhook_id: str, deliveries: Sequence[Delivery], now_us: int) -> int:
        """Queue deliveries of a webhook anew, due now and with no attempt made; those that wait are due now.

        Returns:
            How many; those that are being sent at this moment stay as they are.
        """
        keys = [WAITING_KEY + webhook_id, SENDING_KEY + webhook_id, RECORDS_KEY, GIVEN_UP_KEY + webhook_id]
        keys += [GIVEN_UP_RECORDS_KEY + webhook_id, TURNS_KEY]
        pairs = [part for delivery in deliveries for part in (delivery.id, delivery.record(0))]
        return int(self._again(keys, [webhook_id, now_us, *pairs]))

    def wake(self, webhook_id: str, now_us: int) -> None:
        """Forget the failures of a webhook and give it a turn, as it was changed."""
        self._client.delete(CIRCUIT_KEY + webhook_id)
        self.send_again(webhook_id, [], now_us)

    def circuit(self, webhook_id: str) -> Circuit:
        """How a webhook's attempts fared since the last success."""
        raw = cast("dict[bytes, bytes]", self._client.hgetall(CIRCUIT_KEY + webhook_id))
        fields = {name.decode(): int(value) for name, value in raw.items()}
        if fields.get("failures", 0) < self._rules.circuit_failures:
            fields.pop("until_us", None)  # the setting was another one when it was opened
        return Circuit(**fields)

    def waiting(self, webhook_id: str) -> int:
        """How many deliveries of a webhook are in its queue, those that are being sent included."""
        return self._client.zcard(WAITING_KEY + webhook_id) + self._client.zcard(SENDING_KEY + webhook_id)

    def queued(self) -> int:
        """How many deliveries are in the queue, those under a lease included."""
        return self._client.hlen(RECORDS_KEY)


def _entry(delivery: Delivery, outcome: Outcome) -> Mapping[str, Any]:
    """An attempt as the log lists it."""
    return {
        "delivery": delivery.id,
        "kind": delivery.kind,
        "item": delivery.alert,
        "attempt": delivery.attempts + 1,
        "verdict": outcome.verdict,
        "at_us": outcome.at_us,
        "status": outcome.status,
        "error": outcome.error,
        "duration_ms": outcome.duration_ms,
        "next_us": outcome.next_us,
    }
