--! keys: lock
--! args: token, lock_ms
-- Renews a lock; 0: another process has it.
if redis.call('GET', lock) ~= token then return 0 end
return redis.call('PEXPIRE', lock, lock_ms)
