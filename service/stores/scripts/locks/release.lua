--! keys: lock
--! args: token
-- Removes a key that still has the caller's value; 0: it has another.
if redis.call('GET', lock) ~= token then return 0 end
return redis.call('DEL', lock)
