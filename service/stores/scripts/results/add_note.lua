--! keys: places, notes
--! args: id, record, most
-- Adds a note to an alert, unless it is stored already, as the record contains its id. Returns 1; 0: the alert has the
-- maximum number of notes; false: there is no such alert.
if redis.call('HEXISTS', places, id) == 0 then return false end
local known = redis.call('LRANGE', notes, 0, -1)
for _, note in ipairs(known) do
  if note == record then return 1 end
end
if #known >= tonumber(most) then return 0 end
redis.call('RPUSH', notes, record)
return 1
