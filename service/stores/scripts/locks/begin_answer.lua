--! keys: answer
--! args: pending, pending_ms
-- Stores that a request is in progress. Returns the answer to the request, or the record of another attempt in
-- progress; false if this attempt is the first.
local found = redis.call('GET', answer)
if found and found ~= pending then return found end
redis.call('SET', answer, pending, 'PX', pending_ms)
return false
