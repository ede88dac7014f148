--! keys: incidents, order, number, examined
--! args: kept, rest*
-- Stores changes of incidents. ``rest``: for each change the incident, its revision and its record; a change that is
-- not newer than the stored one, and does not count more alerts in the same revision, has no effect. Beyond ``kept``
-- incidents, the oldest closed ones are removed. A call examines 1,000 incidents; if too few of them are closed, the
-- next call continues after the number in ``examined``.
local most_examined = 1000
local function stored(id)
  local record = redis.call('HGET', incidents, id)
  return record and cjson.decode(record).incident
end
local function is_newer(revision, record, known)
  return known.revision < revision
    or known.revision == revision and known.alerts < cjson.decode(record).incident.alerts
end
for at = 1, #rest, 3 do
  local id, revision, record = rest[at], tonumber(rest[at + 1]), rest[at + 2]
  local known = stored(id)
  if not known then redis.call('ZADD', order, redis.call('INCR', number), id) end
  if not known or is_newer(revision, record, known) then redis.call('HSET', incidents, id, record) end
end
local beyond = redis.call('ZCARD', order) - tonumber(kept)
if beyond > 0 then
  local after = redis.call('GET', examined) or '0'
  local page = redis.call('ZRANGEBYSCORE', order, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, most_examined)
  for at = 1, #page, 2 do
    local id = page[at]
    local one = stored(id)
    if beyond > 0 and (not one or one.state == 'closed') then
      redis.call('ZREM', order, id)
      redis.call('HDEL', incidents, id)
      beyond = beyond - 1
    end
  end
  if beyond > 0 and #page == 2 * most_examined then
    redis.call('SET', examined, page[#page])
  else
    redis.call('DEL', examined)  -- the next call begins with the oldest
  end
end
return 1
