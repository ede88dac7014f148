--! uses: rerouting, fitting, leaving
--! keys: call, layout, routes, shards*
--! args: call_ms, shard_count, stop, words*
-- Changes records, if all that were read are still stored, with everything that depends on them, and appends control
-- records to every shard. ``words`` has sections, each with the number of its words first: for each record that was
-- read its hash, field and value ('': none); for each operator whose route is stored the hash of users, the stream, its
-- name and its route ('': none); for each control record the stream, kind and body; for each shard the hash of its
-- stops ('': none), where ``stop`` is stored under the position of the last control record; then each command of Redis.
-- ``shard_count`` '': nothing is appended to the log. ``call`` is a key of this call: it keeps the change from being made
-- twice if Redis' reply is lost and the script is sent again. Returns 1, also when sent again; 0 if another writer came
-- first; 'gone' if a stream was removed; or the reply of ``misfit``.
if redis.call('EXISTS', call) == 1 then return 1 end
local at = 1
local function section()
  local first = at + 1
  at = first + words[at]
  return {unpack(words, first, at - 1)}
end
local checks, routings, controls, stops = section(), section(), section(), section()
for i = 1, #checks, 3 do
  if (redis.call('HGET', checks[i], checks[i + 1]) or '') ~= checks[i + 2] then return 0 end
end
local unfit = shard_count ~= '' and misfit(layout, shard_count)
if unfit then return unfit end
if controls[2] ~= 'stream-on' then
  for i = 2, #routings, 4 do if is_gone(routes, routings[i]) then return 'gone' end end
  for i = 1, #controls, 3 do if is_gone(routes, controls[i]) then return 'gone' end end
end
redis.call('SET', call, '1', 'PX', call_ms)
while words[at] do redis.call(unpack(section())) end
for i = 1, #routings, 4 do rerouted(routes, unpack(routings, i, i + 3)) end
for number, shard in ipairs(shards) do
  local last
  for i = 1, #controls, 3 do
    last = redis.call('XADD', shard, '*', 'kind', controls[i + 1], 'stream', controls[i], 'body', controls[i + 2])
  end
  if stops[number] and stops[number] ~= '' then redis.call('HSET', stops[number], last, stop) end
end
return 1
