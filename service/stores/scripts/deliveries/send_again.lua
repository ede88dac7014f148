--! keys: waiting, sending, records, given_up, given_up_records, collected, turns
--! args: webhook, now_us, fresh*
-- Queues deliveries of a webhook again, and gives the webhook a turn. ``fresh``: id and record of each. Deliveries under
-- a lease are unchanged; those that wait get the new record; those that are collected leave their digest. Returns the
-- number of queued deliveries.
local queued = 0
for i = 1, #fresh, 2 do
  local lease = redis.call('ZSCORE', sending, fresh[i])
  if not lease or tonumber(lease) <= tonumber(now_us) then
    redis.call('ZREM', sending, fresh[i])
    redis.call('HSET', records, fresh[i], fresh[i + 1])
    redis.call('ZADD', waiting, now_us, fresh[i])
    redis.call('ZREM', collected, fresh[i])
    redis.call('ZREM', given_up, fresh[i])
    redis.call('HDEL', given_up_records, fresh[i])
    queued = queued + 1
  end
end
if redis.call('ZCARD', waiting) + redis.call('ZCARD', sending) > 0 then redis.call('ZADD', turns, now_us, webhook) end
return queued
