--! keys: records
--! args: id, before, after
-- Replaces a record, if it is still the one that was read or already the new one; 0: another writer came first.
local current = redis.call('HGET', records, id)
if current == after then return 1 end
if current ~= before then return 0 end
redis.call('HSET', records, id, after)
return 1
