--! keys: records, created
--! args: id, record
-- Adds an API key and counts it; an existing one is unchanged.
if redis.call('HSETNX', records, id, record) == 1 then redis.call('INCR', created) end
return 1
