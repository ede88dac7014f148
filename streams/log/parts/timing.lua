-- timed(key, stream, newest): stores the newest time of a stream's events and, by the clock of Redis, when that time last
-- rose and when events were appended.
local function timed(key, stream, newest)
  local clock = redis.call('TIME')
  local now = string.format('%d%06d', clock[1], clock[2])
  local known = redis.call('HGET', key, stream .. ':newest')
  if not known or tonumber(newest) > tonumber(known) then
    redis.call('HSET', key, stream .. ':newest', newest, stream .. ':risen', now)
  end
  redis.call('HSET', key, stream .. ':appended', now)
end
