--! keys: answer
--! args: pending, pending_ms
-- Notes that a request is being answered. Returns its answer, or what stands for another try of it; false: this try is
-- the first.
local found = redis.call('GET', answer)
if found and found ~= pending then return found end
redis.call('SET', answer, pending, 'PX', pending_ms)
return false
