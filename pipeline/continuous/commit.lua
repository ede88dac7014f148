--! keys: epochs, positions, blocks
--! args: shard, epoch, before, after, most_blocks, rows
-- Writes the results of a shard's step from position ``before`` to ``after``, and moves the position, at once. Nothing
-- where the lease's epoch has risen or the position is another one. Returns what happened and the shard's position.
local position = redis.call('HGET', positions, 'position:' .. shard)
if redis.call('HGET', epochs, shard) ~= epoch then return {'fenced', position} end
if position ~= before then return {'moved', position} end
if redis.call('XLEN', blocks) >= tonumber(most_blocks) then return {'full', position} end
redis.call('XADD', blocks, after, 'after', before, 'rows', rows)
redis.call('HSET', positions, 'position:' .. shard, after)
return {'written', after}
