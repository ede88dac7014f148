--! uses: fitting, leaving, living
--! keys: times, layout, routes, streams, shards*
--! args: stream, time_us, since, kind, body, shard_count
-- Appends a tick to every shard. Returns 1; 0 if the stream's last tick is as new, or the stream was removed, or
-- declared again after ``since`` ('*': any declaration); or the reply of ``misfit``.
local known = redis.call('HGET', times, stream .. ':ticked')
if known and tonumber(known) >= tonumber(time_us) or is_gone(routes, stream) then return 0 end
if since ~= '*' and since ~= since_of(streams, stream) then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
redis.call('HSET', times, stream .. ':ticked', time_us)
for _, shard in ipairs(shards) do
  redis.call('XADD', shard, '*', 'kind', kind, 'stream', stream, 'body', body)
end
return 1
