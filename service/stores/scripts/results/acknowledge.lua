--! keys: places, acknowledged
--! args: id, record
-- Acknowledges an alert. Returns its first acknowledgement; false: there is no such alert.
if redis.call('HEXISTS', places, id) == 0 then return false end
redis.call('HSETNX', acknowledged, id, record)
return redis.call('HGET', acknowledged, id)
