--! keys: job, epochs, owners, members, wake
--! args: id, member, life_ms, shards
-- Renews a member's beat and its leases. A member holds its fair part of the shards: it gives back what is beyond that,
-- and takes shards without a living owner. A shard's epoch rises with each change of its owner. Returns shards and
-- epochs in turn; false: another job has begun. Wakes the others when a member is new or gone, or shards become free.
if redis.call('GET', job) ~= id then return false end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local changes = redis.call('ZADD', members, now, member)
changes = changes + redis.call('ZREMRANGEBYSCORE', members, '-inf', now - tonumber(life_ms))
local fair = math.ceil(tonumber(shards) / redis.call('ZCARD', members))
local held, free = {}, {}
for shard = 0, tonumber(shards) - 1 do
  local owner = redis.call('HGET', owners, shard)
  if owner == member then
    held[#held + 1] = shard
  elseif not owner or not redis.call('ZSCORE', members, owner) then
    free[#free + 1] = shard
  end
end
while #held > fair do
  local shard = table.remove(held)
  redis.call('HDEL', owners, shard)
  redis.call('HINCRBY', epochs, shard, 1)
  changes = changes + 1
end
if changes > 0 then redis.call('XADD', wake, 'MAXLEN', 1, '*', 'member', member) end
for _, shard in ipairs(free) do
  if #held < fair then
    redis.call('HSET', owners, shard, member)
    redis.call('HINCRBY', epochs, shard, 1)
    held[#held + 1] = shard
  end
end
local found = {}
for _, shard in ipairs(held) do
  found[#found + 1] = shard
  found[#found + 1] = tonumber(redis.call('HGET', epochs, shard))
end
return found
