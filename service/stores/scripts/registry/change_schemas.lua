--! keys: streams, types, versions
--! args: stream, before, after, kept, written*
-- Replaces the record of a stream, if it is still the one that was read; 0: another writer came first. ``written``, if
-- a schema changes with it: the type and its record, '' to remove it. The newest ``kept`` records stay as versions.
if redis.call('HGET', streams, stream) ~= before then return 0 end
redis.call('HSET', streams, stream, after)
if written[2] == '' then redis.call('HDEL', types, written[1])
elseif written[2] then
  redis.call('HSET', types, written[1], written[2])
  redis.call('RPUSH', versions, written[2])
  redis.call('LTRIM', versions, -kept, -1)
end
return 1
