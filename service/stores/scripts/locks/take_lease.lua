--! keys: lease
--! args: holder, life_ms
-- Takes or renews a lease; 0: another process holds it.
local current = redis.call('GET', lease)
if current and current ~= holder then return 0 end
redis.call('SET', lease, holder, 'PX', life_ms)
return 1
