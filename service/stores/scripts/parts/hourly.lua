-- count_hours(...): adds ``new`` counts (hour, counter, number) to the hash of each hour, whose names begin with
-- ``hours``, the key of the sorted set of hours. The newest ``kept`` hours up to ``now_us`` stay, and the first
-- ``kept`` hours after it.
local function count_hours(hours, kept, now_us, new)
  if #new == 0 then return end
  for _, one in ipairs(new) do
    redis.call('ZADD', hours, one[1], one[1])
    redis.call('HINCRBY', hours .. ':' .. one[1], one[2], one[3])
  end
  local past = redis.call('ZCOUNT', hours, '-inf', math.floor(now_us / 3600000000))
  local gone = redis.call('ZRANGE', hours, past + kept, -1)
  if past > kept then
    for _, hour in ipairs(redis.call('ZRANGE', hours, 0, past - kept - 1)) do gone[#gone + 1] = hour end
  end
  for _, hour in ipairs(gone) do
    redis.call('UNLINK', hours .. ':' .. hour)
    redis.call('ZREM', hours, hour)
  end
end
