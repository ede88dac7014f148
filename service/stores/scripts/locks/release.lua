--! keys: lock
--! args: token
-- Removes a key that still holds what the caller put there; 0: it holds something else.
if redis.call('GET', lock) ~= token then return 0 end
return redis.call('DEL', lock)
