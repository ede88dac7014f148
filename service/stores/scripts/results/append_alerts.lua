--! uses: noting
--! keys: noted, bodies, number, due, deliveries, counts, trimmed, trimmed_counts, acknowledged, lost_counts
--! args: now_us, alerts, epoch, kept, most_trimmed, index_key, notes_key
-- Appends alerts, a JSON list of them with their indexes, deliveries and counters. An alert that is stored already, or
-- was trimmed in this micro-batch (``epoch``), is skipped with everything that belongs to it. ``kept`` alerts of a
-- stream are kept (0: all); at most ``most_trimmed`` are removed at once. Returns the number of new alerts.
local unwanted = superseded(noted, epoch)
if unwanted then return unwanted end
local function trim(stream)
  local index = index_key .. ':stream:' .. stream
  local beyond = math.min(redis.call('XLEN', index) - tonumber(kept), tonumber(most_trimmed))
  if beyond <= 0 then return end
  for _, entry in ipairs(redis.call('XRANGE', index, '-', '+', 'COUNT', beyond)) do
    local place, id = entry[1], entry[2][2]
    local body = redis.call('HGET', bodies, id)
    if body then
      local pattern = cjson.decode(body).alert.pattern
      redis.call('XDEL', index_key .. ':pattern:' .. pattern, place)
      redis.call('XDEL', index .. ':pattern:' .. pattern, place)
    end
    redis.call('XDEL', index_key, place)
    redis.call('XDEL', index, place)
    redis.call('HDEL', bodies, id)
    redis.call('HDEL', acknowledged, id)
    redis.call('DEL', notes_key .. id)
    redis.call('SADD', trimmed, id)
    redis.call('HINCRBY', trimmed_counts, stream, 1)
  end
end
if redis.call('SISMEMBER', trimmed, epoch) == 0 then
  redis.call('DEL', trimmed)
  redis.call('SADD', trimmed, epoch)
end
local added, streams = 0, {}
for _, alert in ipairs(cjson.decode(alerts)) do
  if redis.call('SISMEMBER', trimmed, alert.id) == 0 and redis.call('HSETNX', bodies, alert.id, alert.body) == 1 then
    added = added + 1
    streams[alert.stream] = true
    local place = string.format('%d-0', redis.call('INCR', number))
    redis.call('HINCRBY', counts, alert.counter, 1)
    if alert.lost then redis.call('HINCRBY', lost_counts, alert.counter, 1) end
    for _, index in ipairs(alert.indexes) do
      redis.call('XADD', index, place, 'id', alert.id)
    end
    for _, delivery in ipairs(alert.deliveries) do
      redis.call('HSET', deliveries, delivery.id, delivery.record)
      redis.call('ZADD', due, now_us, delivery.id)
    end
  end
end
if tonumber(kept) > 0 then
  for stream in pairs(streams) do trim(stream) end
end
return added
