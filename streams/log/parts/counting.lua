-- limited(...): the exceeded limit ('events' or 'bytes'), the backlog with the new events and without them; nil: none.
-- counted(...): counts an entry; returns the totals of the shard up to this entry: entries, events and bytes.
local function number(key, field) return tonumber(redis.call('HGET', key, field) or 0) end
local function limited(appended, matched, events, bytes, most_events, most_bytes)
  local waiting = math.max(0, number(appended, 'events') - number(matched, 'events'))
  if waiting > 0 and waiting + events > most_events then return {'events', waiting + events, waiting} end
  local held = math.max(0, number(appended, 'bytes') - number(matched, 'bytes'))
  if held > 0 and held + bytes > most_bytes then return {'bytes', held + bytes, held} end
end
local function counted(appended, shard, events, bytes)
  local upto = {}
  for i, counter in ipairs({{'entries', 1}, {'events', events}, {'bytes', bytes}}) do
    redis.call('HINCRBY', appended, counter[1], counter[2])
    upto[i] = string.format('%.0f', redis.call('HINCRBY', appended, counter[1] .. ':' .. shard, counter[2]))
  end
  return table.concat(upto, ':')
end
