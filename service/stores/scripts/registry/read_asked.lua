--! keys: operators, streams, times, heartbeat
--! args: field, parts*
-- Returns the record of an operator, the record of its stream, the times of the stream whose fields end with
-- ``parts``, and the pipeline's last heartbeat, read atomically; nothing if the operator does not exist.
local record = redis.call('HGET', operators, field)
if not record then return {} end
local stream = cjson.decode(record).stream
for i, part in ipairs(parts) do parts[i] = stream .. part end
return {record, redis.call('HGET', streams, stream), redis.call('HMGET', times, unpack(parts)), redis.call('GET', heartbeat)}
