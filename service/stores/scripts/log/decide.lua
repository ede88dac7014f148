--! uses: fitting, leaving, living
--! keys: deciders, layout, routes, streams, shards*
--! args: field, before, after, stream, since, kind, body, shard_count
-- Replaces the record of a decider, if it is still ``before``, and appends the control record of the decision to every
-- shard (``kind`` '': none). Returns 1, also if the new record is stored already, because the script was sent again
-- after a lost reply; 0 if another writer came first; 'gone' if the stream was removed, or declared again after
-- ``since``; or the reply of ``misfit``.
local current = redis.call('HGET', deciders, field) or ''
if current == after then return 1 end
if current ~= before then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if is_gone(routes, stream) or since ~= since_of(streams, stream) then return 'gone' end
redis.call('HSET', deciders, field, after)
if kind ~= '' then
  for _, shard in ipairs(shards) do
    redis.call('XADD', shard, '*', 'kind', kind, 'stream', stream, 'body', body)
  end
end
return 1
