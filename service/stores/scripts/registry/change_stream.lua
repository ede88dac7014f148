--! uses: fitting
--! keys: streams, constraints, constraint_versions, layout, shards*
--! args: stream, before, after, rules_before, rules_after, version_field, shard_count, controls*
-- Replaces the record of a stream, if it is still the one that was read, and its constraint set likewise
-- (``rules_after`` '': unchanged), and appends control records to every shard: ``controls``: kind and body of each.
-- Returns 1, also if the new record is stored already: the reply was lost, and the script is sent again; 0: another
-- writer came first; or the reply of ``misfit``.
local current = redis.call('HGET', streams, stream)
if current == after then return 1 end
if current ~= before or (redis.call('HGET', constraints, stream) or '') ~= rules_before then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
redis.call('HSET', streams, stream, after)
if rules_after ~= '' then
  redis.call('HSET', constraints, stream, rules_after)
  redis.call('HSET', constraint_versions, version_field, rules_after)
end
for at = 1, #controls, 2 do
  for _, shard in ipairs(shards) do
    redis.call('XADD', shard, '*', 'kind', controls[at], 'stream', stream, 'body', controls[at + 1])
  end
end
return 1
