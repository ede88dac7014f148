--! keys: range, noted, blocks*
--! args: run_id, before, number, batch, afters*
-- Notes the range of a batch (``number``) after the batch ``before``, and removes the blocks of its shards that are
-- written: those before ``afters``. Returns 1; 0 if the server has restarted, so ``run_id`` differs; -1 if another
-- driver has noted a batch.
if not string.find(redis.call('INFO', 'server'), 'run_id:' .. run_id, 1, true) then return 0 end
local latest = redis.call('GET', noted)
if latest and latest ~= before and redis.call('GET', range) ~= batch then return -1 end
redis.call('SET', range, batch)
redis.call('SET', noted, number)
for i, key in ipairs(blocks) do redis.call('XTRIM', key, 'MINID', afters[i]) end
return 1
