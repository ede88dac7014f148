--! uses: turns
--! keys: waiting, sending, collected, records, webhooks, stats, circuit, log, given_up, given_up_records, turns
--! args: id, lease_us, verdict, next_us, record, webhook, status, reason, now_us, entry, log_kept, given_up_kept
--! args: per_target, circuit_failures, circuit_pause_us, body, rest_us
-- Records the outcome of an attempt: ``verdict`` is delivered, retry, dead or dropped; ``entry`` and ``body`` are
-- appended to the log of the webhook. Before ``rest_us`` (0: no pause) the webhook gets no attempts. The verdict
-- unreadable abandons a delivery without an attempt, also one that is collected, which has no lease. Returns 1, or 0 if
-- the lease had run out or the delivery is not collected any more.
local now = tonumber(now_us)
local lease = redis.call('ZSCORE', sending, id)
local is_collected = verdict == 'unreadable' and redis.call('ZREM', collected, id) == 1
if verdict == 'delivered' then
  if not lease and not redis.call('ZSCORE', waiting, id) then return 0 end
elseif not is_collected and (not lease or tonumber(lease) ~= tonumber(lease_us)) then
  return 0
end
redis.call('ZREM', waiting, id)
redis.call('ZREM', sending, id)
if verdict == 'retry' then
  redis.call('ZADD', waiting, next_us, id)
  redis.call('HSET', records, id, record)
else
  redis.call('HDEL', records, id)
end
if verdict ~= 'dropped' and redis.call('HEXISTS', webhooks, webhook) == 1 then
  if verdict == 'dead' or verdict == 'unreadable' then
    redis.call('ZADD', given_up, now_us, id)
    redis.call('HSET', given_up_records, id, record)
    local over = redis.call('ZCARD', given_up) - tonumber(given_up_kept)
    if over > 0 then
      for _, old in ipairs(redis.call('ZRANGE', given_up, 0, over - 1)) do
        redis.call('ZREM', given_up, old)
        redis.call('HDEL', given_up_records, old)
      end
    end
    redis.call('HINCRBY', stats, 'dead', 1)
  end
  if verdict == 'unreadable' then
    redis.call('HSET', stats, 'last_error', reason)
  elseif verdict == 'delivered' then
    redis.call('HINCRBY', stats, 'delivered', 1)
    redis.call('DEL', circuit)
  else
    redis.call('HINCRBY', stats, 'failed_attempts', 1)
    redis.call('HSETNX', circuit, 'since_us', now_us)
    if rest_us ~= '0' then redis.call('HSET', circuit, 'rest_us', rest_us) end
    if redis.call('HINCRBY', circuit, 'failures', 1) >= tonumber(circuit_failures) then
      redis.call('HSET', circuit, 'until_us', string.format('%.0f', now + tonumber(circuit_pause_us)))
    end
  end
  if verdict ~= 'unreadable' then
    redis.call('HSET', stats, 'last_status', status, 'last_error', reason, 'last_attempt_us', now_us)
    redis.call('XADD', log, 'MAXLEN', '~', log_kept, '*', 'record', entry, 'body', body)
  end
end
local turn = redis.call('ZSCORE', turns, webhook)
if not turn or tonumber(turn) > now then
  local found = next_turn(waiting, sending, circuit, per_target, circuit_failures)
  set_turn(turns, webhook, found and math.max(found, now))
end
return 1
