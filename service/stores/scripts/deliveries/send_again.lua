--! keys: waiting, sending, records, given_up, given_up_records, collected, turns
--! args: webhook, now_us, fresh*
-- Queues deliveries of a webhook again. ``fresh``: id and record of each. Deliveries that are being sent are
-- unchanged; those that are collected leave their digest. Returns the number of queued deliveries.
local queued = 0
for i = 1, #fresh, 2 do
  if not redis.call('ZSCORE', sending, fresh[i]) then
    redis.call('HSETNX', records, fresh[i], fresh[i + 1])
    redis.call('ZADD', waiting, now_us, fresh[i])
    redis.call('ZREM', collected, fresh[i])
    redis.call('ZREM', given_up, fresh[i])
    redis.call('HDEL', given_up_records, fresh[i])
    queued = queued + 1
  end
end
if redis.call('ZCARD', waiting) > 0 then redis.call('ZADD', turns, now_us, webhook) end
return queued
