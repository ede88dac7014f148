--! uses: hourly, listing, noting
--! keys: noted, entries, size, counts, seen, due, deliveries, hours
--! args: epoch, kept, kept_hours, now_us, chunk, block
-- Lists and counts rows of a micro-batch (``epoch``), all or nothing. ``block``: the rows ('': they are not listed).
-- ``chunk`` is JSON: ``ids`` of the rows in order; ``counts``: counters and amounts; ``hours``: hour, counter, number;
-- ``deliveries``: ids and records.
-- If some rows were written in this micro-batch already, nothing is written, and their indexes in ``ids`` are returned.
local unwanted = superseded(noted, epoch)
if unwanted then return unwanted end
if redis.call('SISMEMBER', seen, epoch) == 0 then
  redis.call('UNLINK', seen)
  redis.call('SADD', seen, epoch)
end
local new = cjson.decode(chunk)
local known = {}
for i, is_known in ipairs(redis.call('SMISMEMBER', seen, unpack(new.ids))) do
  if is_known == 1 then known[#known + 1] = i end
end
if #known > 0 then return known end
redis.call('SADD', seen, unpack(new.ids))
if block ~= '' then list(entries, size, tonumber(kept), #new.ids, 'block', block) end
for _, count in ipairs(new.counts) do redis.call('HINCRBY', counts, count[1], count[2]) end
count_hours(hours, tonumber(kept_hours), tonumber(now_us), new.hours)
for _, delivery in ipairs(new.deliveries) do
  redis.call('HSET', deliveries, delivery.id, delivery.record)
  redis.call('ZADD', due, now_us, delivery.id)
end
return known
