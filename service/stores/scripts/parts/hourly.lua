-- count_hours(...): adds ``new`` counts (hour, counter, number) to the hash of each hour, whose names begin with
-- ``hours``, the key of the sorted set of hours. Hours beyond the ``newest`` ones are removed.
local function count_hours(hours, newest, new)
  for _, one in ipairs(new) do
    redis.call('ZADD', hours, one[1], one[1])
    redis.call('HINCRBY', hours .. ':' .. one[1], one[2], one[3])
  end
  for _, hour in ipairs(redis.call('ZRANGE', hours, 0, -newest - 1)) do
    redis.call('UNLINK', hours .. ':' .. hour)
    redis.call('ZREM', hours, hour)
  end
end
