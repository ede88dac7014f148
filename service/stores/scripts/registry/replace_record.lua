--! keys: records
--! args: id, before, after
-- Puts a record in the place of the one that was read, or finds it there; 0: another writer came first.
local current = redis.call('HGET', records, id)
if current == after then return 1 end
if current ~= before then return 0 end
redis.call('HSET', records, id, after)
return 1
