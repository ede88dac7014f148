--! keys: answer
--! args: pending, pending_ms
-- Stores that a request is being answered. Returns its answer, or the record of another attempt in progress; false:
-- this attempt is the first.
local found = redis.call('GET', answer)
if found and found ~= pending then return found end
redis.call('SET', answer, pending, 'PX', pending_ms)
return false
