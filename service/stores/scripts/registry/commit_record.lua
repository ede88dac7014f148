--! uses: rerouting, fitting, leaving
--! keys: records, versions, routes, users, layout, shards*
--! args: field, before, after, version_field, kind, stream, body, is_routed, route, shard_count
-- Puts a record in the place of the one that was read ('': there was none), and appends its control record to every
-- shard (``kind`` '': it has none). ``is_routed`` '1': the field is a pattern whose route may change, to ``route`` ('':
-- it has none), as that of a stream that is declared, whose name is the field. Returns 1; 0: another writer came
-- first; 'gone': the stream was removed; or what ``misfit`` says.
if (redis.call('HGET', records, field) or '') ~= before then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if kind ~= 'stream-on' and is_gone(routes, stream) then return 'gone' end
redis.call('HSET', records, field, after)
redis.call('HSET', versions, version_field, after)
if is_routed == '1' then rerouted(routes, users, stream, field, route) end
if kind == '' then return 1 end
for _, shard in ipairs(shards) do
  redis.call('XADD', shard, '*', 'kind', kind, 'stream', stream, 'body', body)
end
return 1
