--! uses: fitting, leaving
--! keys: call, layout, routes, shards*
--! args: call_ms, kind, stream, body, shard_count
-- Appends a control record to these shards. ``call`` is a key of this call: it keeps the record from being appended
-- twice where the reply of Redis was lost and the script is sent again. Returns 1; 0 then; 'gone'
-- where the stream was removed; or what ``misfit`` says.
if redis.call('EXISTS', call) == 1 then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if is_gone(routes, stream) then return 'gone' end
redis.call('SET', call, '1', 'PX', call_ms)
for _, shard in ipairs(shards) do
  redis.call('XADD', shard, '*', 'kind', kind, 'stream', stream, 'body', body)
end
return 1
