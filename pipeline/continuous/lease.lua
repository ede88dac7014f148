--! keys: job, epochs, owners, members, loaded, wake
--! args: id, member, life_ms, shards, states*
-- Renews a member's beat and its leases. A member holds its fair part of the shards: it gives back what is beyond that,
-- and takes shards without a living owner. A member that has too few also takes shards of members that have too many
-- and have not loaded them; loaded shards are given back last. So a task that starts right after another has died takes
-- the dead task's shards, and no other shard moves. A shard's epoch rises with each change of its owner. ``states``:
-- shards whose states the member has, and their epochs, in turn. Returns shards and epochs in turn; false: another job
-- has begun. Wakes the others when a member is new or gone, or shards become free. If no member has renewed
-- for half a life, the server or the machine stood still: each member keeps its leases for another half.
if redis.call('GET', job) ~= id then return false end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local half, newest = tonumber(life_ms) / 2, redis.call('ZREVRANGE', members, 0, 0, 'WITHSCORES')[2]
if newest and now - tonumber(newest) > half then
  for _, one in ipairs(redis.call('ZRANGE', members, 0, -1)) do redis.call('ZADD', members, now - half, one) end
end
local changes = redis.call('ZADD', members, now, member)
changes = changes + redis.call('ZREMRANGEBYSCORE', members, '-inf', now - tonumber(life_ms))
for i = 1, #states, 2 do
  if redis.call('HGET', epochs, states[i]) == states[i + 1] then redis.call('HSET', loaded, states[i], states[i + 1]) end
end
local fair = math.ceil(tonumber(shards) / redis.call('ZCARD', members))
local held, unloaded, free, others, counts = {}, {}, {}, {}, {}
for shard = 0, tonumber(shards) - 1 do
  local owner = redis.call('HGET', owners, shard)
  local has_state = redis.call('HGET', loaded, shard) == redis.call('HGET', epochs, shard)
  if owner == member then
    local own = has_state and held or unloaded
    own[#own + 1] = shard
  elseif not owner or not redis.call('ZSCORE', members, owner) then
    free[#free + 1] = shard
  else
    counts[owner] = (counts[owner] or 0) + 1
    if not has_state then others[#others + 1] = {shard, owner} end
  end
end
for _, shard in ipairs(unloaded) do held[#held + 1] = shard end
while #held > fair do
  local shard = table.remove(held)
  redis.call('HDEL', owners, shard)
  redis.call('HINCRBY', epochs, shard, 1)
  changes = changes + 1
end
for i = #others, 1, -1 do
  local other = others[i]
  if #held + #free < fair and counts[other[2]] > fair then
    free[#free + 1] = other[1]
    counts[other[2]] = counts[other[2]] - 1
    changes = changes + 1
  end
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
