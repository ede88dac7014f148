-- misfit(layout, shards, token): why nothing may be appended to a log that the caller divides into this number of
-- shards; nil: it may. Every script that appends calls it. ``token``: of a caller that holds the log itself; else nil
-- or ''.
local function misfit(layout, shards, token)
  local found = redis.call('HMGET', layout, 'resharding', 'shards')
  if found[1] and found[1] ~= token then return 'resharding' end
  if found[2] and found[2] ~= shards then return 'moved' end
end
