-- timed(key, stream, newest): stores the newest time of a stream's events, and when they were appended, by the clock of
-- Redis.
local function timed(key, stream, newest)
  local known = redis.call('HGET', key, stream .. ':newest')
  if not known or tonumber(newest) > tonumber(known) then redis.call('HSET', key, stream .. ':newest', newest) end
  local now = redis.call('TIME')
  redis.call('HSET', key, stream .. ':appended', string.format('%d%06d', now[1], now[2]))
end
