--! uses: turns
--! keys: new, records, turns, webhooks, digests, restoring
--! args: now_us, lease_us, limit, most_waiting, per_target, circuit_failures, waiting_key, sending_key, circuit_key
--! args: stats_key, given_up_key, given_up_records_key, given_up_kept, collected_key
-- Claims up to ``limit`` due deliveries until ``lease_us``, from webhooks in turn; each ``_key`` is a prefix that a
-- webhook's id completes. New deliveries whose id has '+' after the webhook are collected for its digest.
-- Returns ids and records, and the webhooks whose digests are due; none while a backup is being restored.
if redis.call('EXISTS', restoring) == 1 then return {{}, {}} end
local most_moved, most_webhooks = 1000, 200
local now, most = tonumber(now_us), tonumber(limit)
local function give_up_newest(webhook, id)
  local record = redis.call('HGET', records, id)
  redis.call('HDEL', records, id)
  if not record or redis.call('HEXISTS', webhooks, webhook) == 0 then return end
  redis.call('ZADD', given_up_key .. webhook, now_us, id)
  redis.call('HSET', given_up_records_key .. webhook, id, record)
  redis.call('HINCRBY', stats_key .. webhook, 'dead', 1)
  redis.call('HSET', stats_key .. webhook, 'last_error', 'too many deliveries wait for this webhook')
  local over = redis.call('ZCARD', given_up_key .. webhook) - tonumber(given_up_kept)
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', given_up_key .. webhook, 0, over - 1)) do
      redis.call('ZREM', given_up_key .. webhook, old)
      redis.call('HDEL', given_up_records_key .. webhook, old)
    end
  end
end
local function every_us_of(webhook)
  local record = redis.call('HGET', webhooks, webhook)
  local digest = record and cjson.decode(record).digest
  return type(digest) == 'table' and digest.every_us
end
local intervals = {}
local function collect(webhook, id, due)
  redis.call('ZADD', collected_key .. webhook, due, id)
  if intervals[webhook] == nil then intervals[webhook] = every_us_of(webhook) or false end
  local every_us, planned = intervals[webhook], redis.call('ZSCORE', digests, webhook)
  -- A time within a minute stays, as a digest that could not be made is tried again after a minute.
  if planned and (not every_us or tonumber(planned) <= now + 60000000) then return end
  redis.call('ZADD', digests, 'LT', string.format('%.0f', tonumber(due) + (every_us or 0)), webhook)
end
local function take_new()
  local found = redis.call('ZRANGEBYSCORE', new, '-inf', now_us, 'WITHSCORES', 'LIMIT', 0, most_moved)
  for i = 1, #found, 2 do
    local id, due = found[i], found[i + 1]
    local webhook = string.match(id, '^[^:]*')
    local is_collected = string.sub(id, #webhook + 2, #webhook + 2) == '+'
    if redis.call('ZCARD', (is_collected and collected_key or waiting_key) .. webhook) >= tonumber(most_waiting) then
      give_up_newest(webhook, id)
    elseif is_collected then
      collect(webhook, id, due)
    else
      redis.call('ZADD', waiting_key .. webhook, due, id)
      local turn = redis.call('ZSCORE', turns, webhook)
      if not turn or tonumber(turn) > tonumber(due) then redis.call('ZADD', turns, due, webhook) end
    end
    redis.call('ZREM', new, id)
  end
end
local function drop_some(webhook)
  local waiting, sending = waiting_key .. webhook, sending_key .. webhook
  for _, id in ipairs(redis.call('ZRANGE', waiting, 0, most_moved - 1)) do
    redis.call('ZREM', waiting, id)
    redis.call('HDEL', records, id)
  end
  for _, id in ipairs(redis.call('ZRANGE', sending, 0, -1)) do redis.call('HDEL', records, id) end
  redis.call('DEL', sending)
  set_turn(turns, webhook, redis.call('ZCARD', waiting) > 0 and now or nil)
end
local function offer(webhook)
  local waiting, sending, circuit = waiting_key .. webhook, sending_key .. webhook, circuit_key .. webhook
  local lapsed = redis.call('ZRANGEBYSCORE', sending, '-inf', now_us, 'WITHSCORES')
  for i = 1, #lapsed, 2 do
    redis.call('ZREM', sending, lapsed[i])
    redis.call('ZADD', waiting, lapsed[i + 1], lapsed[i])
  end
  local room, opens_us = room_of(waiting, sending, circuit, per_target, circuit_failures)
  if room < 1 or opens_us > now then return {} end
  return redis.call('ZRANGEBYSCORE', waiting, '-inf', now_us, 'LIMIT', 0, math.min(room, most))
end
take_new()
local offers = {}
for _, webhook in ipairs(redis.call('ZRANGEBYSCORE', turns, '-inf', now_us, 'LIMIT', 0, most_webhooks)) do
  local record = redis.call('HGET', webhooks, webhook)
  if not record then
    drop_some(webhook)
  elseif not cjson.decode(record).is_enabled then
    redis.call('ZREM', turns, webhook)
  else
    offers[#offers + 1] = {webhook = webhook, ids = offer(webhook), taken = 0}
  end
end
local claimed, is_any = {}, true
while is_any and #claimed < most do
  is_any = false
  for _, one in ipairs(offers) do
    local id = one.ids[one.taken + 1]
    if id and #claimed < most then
      is_any = true
      one.taken = one.taken + 1
      redis.call('ZREM', waiting_key .. one.webhook, id)
      local record = redis.call('HGET', records, id)
      if record then
        redis.call('ZADD', sending_key .. one.webhook, lease_us, id)
        claimed[#claimed + 1] = {id, record}
      end
    end
  end
end
for _, one in ipairs(offers) do
  local webhook = one.webhook
  if one.taken > 0 or #one.ids == 0 then
    local waiting, sending, circuit = waiting_key .. webhook, sending_key .. webhook, circuit_key .. webhook
    local turn = next_turn(waiting, sending, circuit, per_target, circuit_failures)
    set_turn(turns, webhook, turn and math.max(turn, now))
  end
end
return {claimed, redis.call('ZRANGEBYSCORE', digests, '-inf', now_us, 'LIMIT', 0, most_webhooks)}
