--! uses: hourly, noting
--! keys: noted, places, blocks, number, due, deliveries, counts, lost_counts, sizes, trimmed, trimmed_counts
--! keys: acknowledged, hours
--! args: epoch, kept, kept_hours, most_trimmed, now_us, index_key, notes_key, chunk, new_blocks*
-- Appends a chunk of alerts with their deliveries and counters, all or nothing. ``chunk`` is JSON: ``ids`` of the
-- alerts in order; ``streams``, for each block its stream, the indexes of its alerts in ``ids``, and their patterns
-- with the number of each; ``counts``: counter, number, and the number that pruning would have lost; ``hours``: hour,
-- counter, number; ``deliveries``: ids and records. If some of the alerts are stored already, or were trimmed in this
-- micro-batch (``epoch``), nothing is written, and their indexes in ``ids`` are returned. At least ``kept`` alerts of
-- each stream are kept (0: all), and at most ``most_trimmed`` are removed at once.
local unwanted = superseded(noted, epoch)
if unwanted then return unwanted end
local function forget(index, place)
  for _, entry in ipairs(redis.call('XRANGE', index, place, place)) do
    for i = 1, #entry[2], 2 do
      if redis.call('HEXISTS', blocks, entry[1] .. ':' .. entry[2][i]) == 1 then return end
    end
    redis.call('XDEL', index, place)
  end
end
local function remove(stream, place)
  local name = place .. ':' .. stream
  local block = redis.call('HGET', blocks, name)
  local header = cjson.decode(string.sub(block, 1, string.find(block, '\n', 1, true) - 1))
  local notes = {}
  for i, id in ipairs(header.ids) do notes[i] = notes_key .. id end
  redis.call('HDEL', blocks, name)
  redis.call('HDEL', places, unpack(header.ids))
  redis.call('HDEL', acknowledged, unpack(header.ids))
  redis.call('UNLINK', unpack(notes))
  redis.call('SADD', trimmed, unpack(header.ids))
  redis.call('HINCRBY', trimmed_counts, stream, #header.ids)
  redis.call('HINCRBY', sizes, stream, -#header.ids)
  forget(index_key, place)
  for _, pattern in ipairs(header.patterns) do forget(index_key .. ':pattern:' .. pattern, place) end
end
local function trim(stream)
  local index = index_key .. ':stream:' .. stream
  local beyond = math.min(tonumber(redis.call('HGET', sizes, stream)) - tonumber(kept), tonumber(most_trimmed))
  while beyond > 0 do
    local oldest = redis.call('XRANGE', index, '-', '+', 'COUNT', 1)[1]
    if not oldest then return end
    beyond = beyond - tonumber(oldest[2][2])
    if beyond < 0 then return end
    redis.call('XDEL', index, oldest[1])
    remove(stream, oldest[1])
  end
end
if redis.call('SISMEMBER', trimmed, epoch) == 0 then
  redis.call('UNLINK', trimmed)
  redis.call('SADD', trimmed, epoch)
end
local new = cjson.decode(chunk)
local known = {}
local stored, gone = redis.call('HMGET', places, unpack(new.ids)), redis.call('SMISMEMBER', trimmed, unpack(new.ids))
for i = 1, #new.ids do
  if stored[i] or gone[i] == 1 then known[#known + 1] = i end
end
if #known > 0 then return known end
local place = string.format('%d-0', redis.call('INCRBY', number, #new.ids))
local all, by_pattern, found = {}, {}, {}
for i, part in ipairs(new.streams) do
  redis.call('HSET', blocks, place .. ':' .. part.stream, new_blocks[i])
  redis.call('HINCRBY', sizes, part.stream, #part.rows)
  redis.call('XADD', index_key .. ':stream:' .. part.stream, place, part.stream, #part.rows)
  all[#all + 1], all[#all + 2] = part.stream, #part.rows
  for pattern, rows in pairs(part.patterns) do
    local listed = by_pattern[pattern] or {}
    by_pattern[pattern] = listed
    listed[#listed + 1], listed[#listed + 2] = part.stream, rows
  end
  for row, at in ipairs(part.rows) do
    found[2 * at - 1], found[2 * at] = new.ids[at], row .. ':' .. place .. ':' .. part.stream
  end
end
redis.call('HSET', places, unpack(found))
redis.call('XADD', index_key, place, unpack(all))
for pattern, listed in pairs(by_pattern) do
  redis.call('XADD', index_key .. ':pattern:' .. pattern, place, unpack(listed))
end
for _, count in ipairs(new.counts) do
  redis.call('HINCRBY', counts, count[1], count[2])
  if count[3] > 0 then redis.call('HINCRBY', lost_counts, count[1], count[3]) end
end
count_hours(hours, tonumber(kept_hours), tonumber(now_us), new.hours)
for _, delivery in ipairs(new.deliveries) do
  redis.call('HSET', deliveries, delivery.id, delivery.record)
  redis.call('ZADD', due, now_us, delivery.id)
end
if tonumber(kept) > 0 then
  for _, part in ipairs(new.streams) do trim(part.stream) end
end
return known
