--! keys: appended, matched, marks, reports, shards*
--! args: marks_kept, shard_reports*
-- Counts the matched events of a micro-batch. ``shard_reports``: for each shard its number, the position up to which it
-- is matched, and its report. Returns 1 for each shard that was counted, 0 for a shard that had reached the position
-- before.
local function later(one, other)
  local ms, n = string.match(one, '(%d+)-(%d+)')
  local other_ms, other_n = string.match(other, '(%d+)-(%d+)')
  if ms ~= other_ms then return tonumber(ms) > tonumber(other_ms) end
  return tonumber(n) > tonumber(other_n)
end
local names = {'entries', 'events', 'bytes'}
local function all_of(shard)
  local counts = {}
  for j, name in ipairs(names) do counts[j] = tonumber(redis.call('HGET', appended, name .. ':' .. shard) or 0) end
  return counts
end
-- The totals of a shard that is matched up to a position: all at its end, else those in the last counted entry.
local function reached(key, shard, known, position)
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
  if #last == 0 or not later(last[1][1], position) then return all_of(shard) end
  local from = position
  while true do
    local found = redis.call('XREVRANGE', key, from, '(' .. known, 'COUNT', 1)
    if #found == 0 then return {} end
    for i = 1, #found[1][2], 2 do
      if found[1][2][i] == 'upto' then
        local entries, events, bytes = string.match(found[1][2][i + 1], '(%d+):(%d+):(%d+)')
        return {tonumber(entries), tonumber(events), tonumber(bytes)}
      end
    end
    from = '(' .. found[1][1]
  end
end
local fresh, done = {}, {0, 0, 0}
for i, key in ipairs(shards) do
  local shard, position, report = shard_reports[3 * i - 2], shard_reports[3 * i - 1], shard_reports[3 * i]
  local known = redis.call('HGET', matched, 'position:' .. shard) or '0-0'
  fresh[i] = 0
  if later(position, known) then
    fresh[i] = 1
    for j, count in ipairs(reached(key, shard, known, position)) do
      local field = names[j] .. ':' .. shard
      local rise = count - tonumber(redis.call('HGET', matched, field) or 0)
      redis.call('HINCRBY', matched, field, string.format('%.0f', rise))
      redis.call('HINCRBY', matched, names[j], string.format('%.0f', rise))
      done[j] = done[j] + rise
    end
    redis.call('HSET', matched, 'position:' .. shard, position)
    redis.call('HSET', reports, shard, report)
  end
end
if done[1] > 0 then
  local now = redis.call('TIME')
  local mark = string.format('[%.0f,%.0f,%.0f,%.0f]', now[1] * 1000000 + now[2], done[1], done[2], done[3])
  redis.call('LPUSH', marks, mark)
  redis.call('LTRIM', marks, 0, marks_kept - 1)
end
return fresh
