--! uses: fitting, living, deriving
--! keys: layout, epochs, positions, blocks, appended, times, streams, routes, promises, shards*
--! args: shard_count, shard, epoch, before, after, most_blocks, rows, appends, promising, kind, tick, bodies*
-- Writes the results of a shard's step from position ``before`` to ``after``, appends its derived events, and moves the
-- position, atomically. Changes nothing if the lease's epoch has risen or the position is another one, if the log is
-- being resharded or was, or if a derived stream was not declared at the time ``since``. ``appends``, ``promising``,
-- ``kind`` and ``tick`` are those of the part ``deriving``; ``appends`` has the members ``since`` too. Returns the
-- outcome, and the shard's position; with the outcome 'declared', the times of the streams of ``appends``.
local position = redis.call('HGET', positions, 'position:' .. shard)
if redis.call('HGET', epochs, shard) ~= epoch then return {'fenced', position} end
if misfit(layout, shard_count) then return {'divided', position} end
if position ~= before then return {'moved', position} end
if redis.call('XLEN', blocks) >= tonumber(most_blocks) then return {'full', position} end
local derivations, sinces, is_known, used = cjson.decode(appends), {}, true, 0
for i, one in ipairs(derivations) do
  sinces[i] = since_of(streams, one.stream)
  is_known = is_known and sinces[i] == one.since
end
if not is_known then return {'declared', sinces} end
redis.call('XADD', blocks, after, 'after', before, 'rows', rows)
redis.call('HSET', positions, 'position:' .. shard, after)
for _, one in ipairs(derivations) do used = derived(appended, times, shards, one, bodies, used) end
local keys = {promises = promises, streams = streams, times = times, routes = routes}
for _, one in ipairs(cjson.decode(promising)) do promised(keys, shards, one, kind, tick) end
return {'written', after}
