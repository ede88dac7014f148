--! uses: fitting, leaving
--! keys: call, layout, routes, shards*
--! args: call_ms, kind, stream, body, shard_count
-- Appends a control record to these shards. ``call`` is a key of this call: it keeps the record from being appended
-- twice if Redis' reply is lost and the script is sent again. Returns 1; 0 when sent again; 'gone' if the stream was
-- removed; or the reply of ``misfit``.
if redis.call('EXISTS', call) == 1 then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if is_gone(routes, stream) then return 'gone' end
redis.call('SET', call, '1', 'PX', call_ms)
for _, shard in ipairs(shards) do
  redis.call('XADD', shard, '*', 'kind', kind, 'stream', stream, 'body', body)
end
return 1
