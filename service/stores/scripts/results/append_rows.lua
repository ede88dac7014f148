--! uses: noting
--! keys: noted, entries, counts, seen, due, deliveries
--! args: epoch, kept, now_us, rows*
-- Lists and counts the rows of a micro-batch (``epoch``), each once. ``rows``: of each its id, its record ('': not
-- listed), its counter, the amount to add to it, and a JSON list of its deliveries (''). Returns the number of new
-- rows.
local unwanted = superseded(noted, epoch)
if unwanted then return unwanted end
if redis.call('SISMEMBER', seen, epoch) == 0 then
  redis.call('DEL', seen)
  redis.call('SADD', seen, epoch)
end
local added = 0
for i = 1, #rows, 5 do
  if redis.call('SADD', seen, rows[i]) == 1 then
    if rows[i + 1] ~= '' then redis.call('XADD', entries, 'MAXLEN', '~', kept, '*', 'record', rows[i + 1]) end
    redis.call('HINCRBY', counts, rows[i + 2], rows[i + 3])
    if rows[i + 4] ~= '' then
      for _, delivery in ipairs(cjson.decode(rows[i + 4])) do
        redis.call('HSET', deliveries, delivery.id, delivery.record)
        redis.call('ZADD', due, now_us, delivery.id)
      end
    end
    added = added + 1
  end
end
return added
