-- misfit(layout, shards): why nothing may be appended to a log that the caller divides into that number of shards; nil:
-- it may. Every script that appends asks.
local function misfit(layout, shards)
  local found = redis.call('HMGET', layout, 'resharding', 'shards')
  if found[1] then return 'resharding' end
  if found[2] and found[2] ~= shards then return 'moved' end
end
