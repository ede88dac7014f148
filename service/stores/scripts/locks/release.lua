--! keys: lock
--! args: token
-- Removes a key if it still has the caller's value; otherwise returns 0.
if redis.call('GET', lock) ~= token then return 0 end
return redis.call('DEL', lock)
