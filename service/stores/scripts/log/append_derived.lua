--! uses: counting, timing, fitting, living
--! keys: marks, appended, times, layout, streams, shards*
--! args: moves, stream, since, newest_us, shard_count, token, parts*
-- Appends events of a derived stream and moves the marks of the shards that they come from, all or nothing. ``moves``:
-- a JSON list with the field, the expected value ('': no mark) and the new value of each mark. ``token``: of a caller
-- that holds the log itself ('': none). ``parts``: of each shard the body and the number of its events. They count in
-- the backlog and are never refused. ``since``: when the stream was declared. ``newest_us`` '': no events, only the
-- marks move. Returns 1; 0: a mark has another value, or the stream was declared again; or the reply of ``misfit``.
local unfit = misfit(layout, shard_count, token)
if unfit then return unfit end
if since ~= since_of(streams, stream) then return 0 end
local moved = cjson.decode(moves)
for _, move in ipairs(moved) do
  if (redis.call('HGET', marks, move[1]) or '') ~= move[2] then return 0 end
end
for _, move in ipairs(moved) do redis.call('HSET', marks, move[1], move[3]) end
for i, shard in ipairs(shards) do
  local body, count = parts[2 * i - 1], parts[2 * i]
  local upto = counted(appended, string.match(shard, '%d+$'), tonumber(count), #body)
  redis.call('XADD', shard, '*', 'kind', 'events', 'stream', stream, 'body', body, 'upto', upto)
end
if newest_us ~= '' then timed(times, stream, newest_us) end
return 1
