--! uses: counting, timing, living, leaving
-- derived(appended, times, shards, one, bodies, used): appends events of a derived stream. ``one``: the stream, the
-- newest time of the events ('': none), and ``parts`` with the shard and the number of the events of each of the
-- ``bodies`` after the first ``used``. The events count in the backlog and are never refused. Returns the bodies used.
local function derived(appended, times, shards, one, bodies, used)
  for j, part in ipairs(one.parts) do
    local body = bodies[used + j]
    local upto = counted(appended, part[1], part[2], #body)
    redis.call('XADD', shards[part[1] + 1], '*', 'kind', 'events', 'stream', one.stream, 'body', body, 'upto', upto)
  end
  if one.newest_us ~= '' then timed(times, one.stream, one.newest_us) end
  return used + #one.parts
end
-- promised(keys, shards, one, kind, tick): stores promises to a derived stream, and appends a tick to every shard
-- (``shards`` are all) if its time has advanced. ``keys``: of promises, streams, times and routes. ``one``: the stream,
-- and of each shard its number, the promised time ('': none yet), and the position up to which it had read its log
-- (''). A shard that had not reached the stream's declaration promises nothing. ``tick``: the body of a tick, with %d in
-- the place of its time. Returns the number of ticks. A promise with as many digits as ``closed`` is the time of a closing
-- tick. Once all shards have promised the same closing tick, it is appended, once, and the promises and the time are
-- removed, so that operators may feed the stream again. As long as they differ, no tick is appended.
local closed = '4611686018427387904' -- CLOSED_US
local function promised(keys, shards, one, kind, tick)
  local stream, since, least, closing, differ = one[1], since_of(keys.streams, one[1]), nil, {}, false
  if since == '' then return 0 end
  local appended = redis.call('HGET', keys.times, stream .. ':closed')
  for _, promise in ipairs(one[2]) do
    local before = tonumber(string.match(promise[3], '^%d+') or since)
    local field = promise[1] .. ':' .. stream
    if promise[2] == appended then
      redis.call('HDEL', keys.promises, field)
    elseif before >= tonumber(since) then
      redis.call('HSET', keys.promises, field, promise[2] .. '@' .. since)
    end
  end
  for shard = 0, #shards - 1 do
    local found = redis.call('HGET', keys.promises, shard .. ':' .. stream) or ''
    local time, life = string.match(found, '^([^@]*)@?(.*)$')
    if time == '' or (life ~= '' and life ~= since) then return 0 end
    if #time == #closed then table.insert(closing, shard .. ':' .. stream) end
    differ = differ or least and time ~= least
    if not least or tonumber(time) < tonumber(least) then least = time end
  end
  local known = redis.call('HGET', keys.times, stream .. ':ticked')
  if not least or (known and tonumber(known) >= tonumber(least)) or is_gone(keys.routes, stream) then return 0 end
  if #closing > 0 then
    if differ then return 0 end
    redis.call('HSET', keys.times, stream .. ':closed', least)
    redis.call('HDEL', keys.promises, unpack(closing))
    redis.call('HDEL', keys.times, stream .. ':ticked')
  else
    redis.call('HSET', keys.times, stream .. ':ticked', least)
  end
  local body = string.gsub(tick, '%%d', least)
  for _, log in ipairs(shards) do redis.call('XADD', log, '*', 'kind', kind, 'stream', stream, 'body', body) end
  return 1
end
