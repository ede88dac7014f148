--! uses: fitting
--! keys: records, changes, layout, shards*
--! args: field, before, after, key, row, kind, body, shard_count
-- Changes a row of a table, if the table's record is still the one that was read: stores the row under its key in
-- ``changes``, replaces the record, and appends the control record to every shard. Returns 1, also if it was done
-- before; 0: another writer came first; or the reply of ``misfit``.
local current = redis.call('HGET', records, field)
if current == after then return 1 end
if current ~= before then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
redis.call('HSET', records, field, after)
redis.call('HSET', changes, key, row)
for _, shard in ipairs(shards) do
  redis.call('XADD', shard, '*', 'kind', kind, 'stream', '', 'body', body)
end
return 1
