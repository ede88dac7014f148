--! keys: contexts
--! args: life_ms, events*
-- Returns of each event, by its id, which request brought it, or false. There is a hash for every ``life_ms`` by the
-- clock of Redis.
local now = redis.call('TIME')
local current = math.floor((now[1] * 1000 + now[2] / 1000) / life_ms)
local newer = redis.call('HMGET', contexts .. ':' .. string.format('%d', current), unpack(events))
local older = redis.call('HMGET', contexts .. ':' .. string.format('%d', current - 1), unpack(events))
for i = 1, #newer do newer[i] = newer[i] or older[i] end
return newer
