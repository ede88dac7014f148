--! keys: layout, reports, derived_marks, derived_promises
--! args: token, format, shards_before, shards, starts*
-- Divides the log into another number of shards and releases it; 0 if another process holds or has divided it.
-- ``starts``: two values for each new shard: the position at which its log begins, and its report. All derived events
-- are in the log, so the marks of former shards, and their promises, are removed.
local found = redis.call('HMGET', layout, 'resharding', 'shards', 'former')
if found[1] ~= token or found[2] ~= shards_before then return 0 end
local former = found[3] and found[3] .. ' ' .. shards_before or shards_before
redis.call('HSET', layout, 'format', format, 'shards', shards, 'generation', shards, 'former', former)
for shard = 0, tonumber(shards) - 1 do
  redis.call('HSET', layout, 'start:' .. shard, starts[1 + 2 * shard])
  redis.call('HSET', reports, shard, starts[2 + 2 * shard])
end
redis.call('DEL', derived_marks, derived_promises)
redis.call('HDEL', layout, 'resharding', 'unfinished')
return 1
