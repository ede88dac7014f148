--! keys: bodies, acknowledged
--! args: id, record
-- Returns the acknowledgement of an alert, which is the first one; false: there is no such alert.
if redis.call('HEXISTS', bodies, id) == 0 then return false end
redis.call('HSETNX', acknowledged, id, record)
return redis.call('HGET', acknowledged, id)
