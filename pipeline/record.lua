--! keys: records, epochs, results
--! args: shard, epoch, after, facts*
-- Records facts about a shard beside its log, names and values in turn, each once. Adds nothing and returns 0
-- if the lease's epoch has risen ('': there are no leases), or results of entries after the position ``after`` are
-- written; otherwise returns 1.
local function parts(position)
  local ms, n = string.match(position, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(n)
end
if epoch ~= '' and redis.call('HGET', epochs, shard) ~= epoch then return 0 end
local ms, n = parts(redis.call('HGET', results, 'position:' .. shard) or '0-0')
local after_ms, after_n = parts(after)
if ms > after_ms or (ms == after_ms and n > after_n) then return 0 end
for i = 1, #facts, 2 do redis.call('HSETNX', records, facts[i], facts[i + 1]) end
return 1
