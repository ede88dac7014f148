--! uses: counting, timing, fitting, living, leaving
--! keys: marks, appended, times, layout, streams, routes, promises, shards*
--! args: appends, promised, kind, tick, shard_count, token, bodies*
-- Appends events of derived streams with the marks of the shards that they come from, stores promises to derived
-- streams, and appends a tick to every shard (``shards`` are all) where the time of a stream has advanced.
--
-- ``appends``: a JSON list; of each stream its name, ``since`` when it was declared, the newest time of the events ('':
-- only the marks move), ``moves`` with the field, the expected value ('': no mark) and the new value of each mark, and
-- ``parts`` with the shard and the number of the events of each of the ``bodies``. Nothing of a stream is appended where
-- a mark has another value, or the stream was declared again. The events count in the backlog and are never refused.
-- ``promised``: a JSON list; of each stream its name, and of each shard its number, the promised time ('': none yet),
-- and the position up to which it had read its log (''). A shard that had not reached the stream's declaration promises
-- nothing, and so does one whose events were not appended. ``tick``: the body of a tick, with %d in the place of its
-- time. ``token``: of a caller that holds the log itself ('': none).
--
-- Returns for each stream of ``appends`` 1 or 0, and the number of ticks; or the reply of ``misfit``.
local unfit = misfit(layout, shard_count, token)
if unfit then return unfit end
local done, missing, used = {}, {}, 0
for i, one in ipairs(cjson.decode(appends)) do
  local is_fit = one.since == since_of(streams, one.stream)
  for _, move in ipairs(one.moves) do
    is_fit = is_fit and (redis.call('HGET', marks, move[1]) or '') == move[2]
  end
  if is_fit then
    for _, move in ipairs(one.moves) do redis.call('HSET', marks, move[1], move[3]) end
    for j, part in ipairs(one.parts) do
      local body = bodies[used + j]
      local upto = counted(appended, part[1], part[2], #body)
      local log = shards[part[1] + 1]
      redis.call('XADD', log, '*', 'kind', 'events', 'stream', one.stream, 'body', body, 'upto', upto)
    end
    if one.newest_us ~= '' then timed(times, one.stream, one.newest_us) end
  else
    missing[one.stream] = true
  end
  done[i], used = is_fit and 1 or 0, used + #one.parts
end
-- The least promise to a stream, as text; nil: a shard promises nothing yet.
local function least(stream, since)
  local found
  for shard = 0, #shards - 1 do
    local time, life = string.match(redis.call('HGET', promises, shard .. ':' .. stream) or '', '^([^@]*)@?(.*)$')
    if time == '' or (life ~= '' and life ~= since) then return nil end
    if not found or tonumber(time) < tonumber(found) then found = time end
  end
  return found
end
local ticks = 0
for _, one in ipairs(cjson.decode(promised)) do
  local stream, since = one[1], since_of(streams, one[1])
  if since ~= '' and not missing[stream] then
    for _, promise in ipairs(one[2]) do
      local before = tonumber(string.match(promise[3], '^%d+') or since)
      if before >= tonumber(since) then
        redis.call('HSET', promises, promise[1] .. ':' .. stream, promise[2] .. '@' .. since)
      end
    end
    local time = least(stream, since)
    local known = redis.call('HGET', times, stream .. ':ticked')
    if time and not (known and tonumber(known) >= tonumber(time)) and not is_gone(routes, stream) then
      redis.call('HSET', times, stream .. ':ticked', time)
      local body = string.gsub(tick, '%%d', time)
      for _, log in ipairs(shards) do redis.call('XADD', log, '*', 'kind', kind, 'stream', stream, 'body', body) end
      ticks = ticks + 1
    end
  end
end
return {done, ticks}
