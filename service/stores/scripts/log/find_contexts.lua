--! keys: contexts
--! args: life_ms, events*
-- Returns for each event, given by its id, the request that brought it, or false. Each period of ``life_ms``, by the
-- clock of Redis, has a hash.
local now = redis.call('TIME')
local current = math.floor((now[1] * 1000 + now[2] / 1000) / life_ms)
local newer = redis.call('HMGET', contexts .. ':' .. string.format('%d', current), unpack(events))
local older = redis.call('HMGET', contexts .. ':' .. string.format('%d', current - 1), unpack(events))
for i = 1, #newer do newer[i] = newer[i] or older[i] end
return newer
