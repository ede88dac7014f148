--! keys: collected, records, waiting, digests, turns, restoring
--! args: webhook, now_us, id, record, ids*
-- Turns collected results of a webhook (``ids``) into one delivery, due now; without ``record`` they are dropped.
-- Returns 1; 0: another call has taken some of them, or a backup is being restored, and nothing changes.
if redis.call('EXISTS', restoring) == 1 then return 0 end
for _, one in ipairs(ids) do
  if not redis.call('ZSCORE', collected, one) then return 0 end
end
for _, one in ipairs(ids) do
  redis.call('ZREM', collected, one)
  redis.call('HDEL', records, one)
end
if redis.call('ZCARD', collected) == 0 then redis.call('ZREM', digests, webhook) end
if record == '' then return 1 end
redis.call('HSET', records, id, record)
redis.call('ZADD', waiting, now_us, id)
local turn = redis.call('ZSCORE', turns, webhook)
if not turn or tonumber(turn) > tonumber(now_us) then redis.call('ZADD', turns, now_us, webhook) end
return 1
