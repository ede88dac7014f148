--! uses: fitting, living, deriving
--! keys: marks, appended, times, layout, streams, routes, promises, shards*
--! args: appends, promising, kind, tick, shard_count, token, bodies*
-- Appends events of derived streams with the marks of the shards that they come from, stores promises to derived
-- streams, and appends a tick to every shard (``shards`` are all) where the time of a stream has advanced.
--
-- ``appends``: a JSON list with an object for each stream: the input of the part ``deriving``, ``since``, the time of
-- declaration, and ``moves`` with the field, the expected value ('': no mark) and the new value of each mark. If a mark
-- has another value, or the stream was declared again, no events of the stream are appended. ``promising``: a JSON list
-- of inputs of that part; a shard whose events were not appended promises nothing. ``token``: the token of a caller
-- that holds the log ('': none).
--
-- Returns for each stream of ``appends`` 1 or 0, and the number of ticks; or the reply of ``misfit``.
local unfit = misfit(layout, shard_count, token)
if unfit then return unfit end
local done, missing, used, ticks = {}, {}, 0, 0
for i, one in ipairs(cjson.decode(appends)) do
  local is_fit = one.since == since_of(streams, one.stream)
  for _, move in ipairs(one.moves) do
    is_fit = is_fit and (redis.call('HGET', marks, move[1]) or '') == move[2]
  end
  done[i] = is_fit and 1 or 0
  if is_fit then
    for _, move in ipairs(one.moves) do redis.call('HSET', marks, move[1], move[3]) end
    used = derived(appended, times, shards, one, bodies, used)
  else
    used, missing[one.stream] = used + #one.parts, true
  end
end
local keys = {promises = promises, streams = streams, times = times, routes = routes}
for _, one in ipairs(cjson.decode(promising)) do
  if not missing[one[1]] then ticks = ticks + promised(keys, shards, one, kind, tick) end
end
return {done, ticks}
