--! uses: rerouting, fitting, leaving
--! keys: records, versions, routes, users, layout, places*
--! args: field, before, after, version_field, kind, stream, body, is_routed, route, shard_count, stop, spared, parts*
-- Replaces a record, if it is still the one that was read ('': none), and appends its control record to every shard
-- (``kind`` '': none). ``is_routed`` '1': the field is a pattern whose route may change, to ``route`` ('': none), or
-- the name of a stream that is declared. ``places``: the keys of the shards, then for each part of an operator the
-- route users of its stream. ``parts``: of each the stream, the name under which its route is kept, the route, and kind
-- and body of its control record, which follows that of the operator. ``stop``: these control records, if they take
-- effect before the backlog ('': they do not); then ``places`` ends with the hashes of stops of the shards, and
-- ``stop`` is put into each under the position of the last control record, except for the shard ``spared`` ('': no
-- exception). Returns 1; 0: another writer came first; 'gone': the stream was removed; or the reply of ``misfit``.
if (redis.call('HGET', records, field) or '') ~= before then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if kind ~= 'stream-on' and is_gone(routes, stream) then return 'gone' end
for at = 1, #parts, 5 do
  if is_gone(routes, parts[at]) then return 'gone' end
end
redis.call('HSET', records, field, after)
redis.call('HSET', versions, version_field, after)
if is_routed == '1' then rerouted(routes, users, stream, field, route) end
local ends = {}
local function tell(kind, stream, body)
  for shard = 1, kind == '' and 0 or tonumber(shard_count) do
    ends[shard] = redis.call('XADD', places[shard], '*', 'kind', kind, 'stream', stream, 'body', body)
  end
end
tell(kind, stream, body)
for at = 1, #parts, 5 do
  rerouted(routes, places[tonumber(shard_count) + (at + 4) / 5], parts[at], parts[at + 1], parts[at + 2])
  tell(parts[at + 3], parts[at], parts[at + 4])
end
for shard = 1, stop == '' and 0 or tonumber(shard_count) do
  if tostring(shard - 1) ~= spared then
    redis.call('HSET', places[tonumber(shard_count) + #parts / 5 + shard], ends[shard], stop)
  end
end
return 1
