--! keys: format, lock
--! args: token, form, lock_ms
-- Stores the format of the store and renews the lock; 0: another process has it.
if redis.call('GET', lock) ~= token then return 0 end
redis.call('SET', format, form)
redis.call('PEXPIRE', lock, lock_ms)
return 1
