--! uses: fitting
--! keys: call, streams, layout, event_ids, turns, places*
--! args: call_ms, stream, before, kind, body, shard_count, hashes, examined, known, mention, webhooks, changes*
-- Removes a stream with all its resources, and appends the control record of the removal to every shard.
-- ``places``: the keys of the shards, then ``hashes`` hashes, then keys to drop. The records of the first ``examined``
-- hashes that contain the text ``mention`` must be the ``known`` records, or another writer came first. ``changes``:
-- for each known record the number of its hash, its field and its digest; then for each change the number of the hash,
-- the field and the record ('': removed). Records removed from the hash number ``webhooks`` get a turn, so that their
-- deliveries are dropped. ``call`` is a key of this call, as in append_control. Returns 1; 0 if another writer came
-- first; or the reply of ``misfit``.
if redis.call('EXISTS', call) == 1 then return 1 end
if redis.call('HGET', streams, stream) ~= before then return 0 end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
local shards, read, seen = tonumber(shard_count), {}, 0
for at = 1, 3 * known, 3 do read[changes[at] .. ':' .. changes[at + 1]] = changes[at + 2] end
for number = 1, tonumber(examined) do
  local records = redis.call('HGETALL', places[shards + number])
  for at = 1, #records, 2 do
    if string.find(records[at + 1], mention, 1, true) then
      if read[number .. ':' .. records[at]] ~= redis.sha1hex(records[at + 1]) then return 0 end
      seen = seen + 1
    end
  end
end
if seen ~= tonumber(known) then return 0 end
redis.call('SET', call, '1', 'PX', call_ms)
redis.call('HDEL', streams, stream)
for at = 3 * known + 1, #changes, 3 do
  local hash, field, after = places[shards + changes[at]], changes[at + 1], changes[at + 2]
  if after ~= '' then redis.call('HSET', hash, field, after) else redis.call('HDEL', hash, field) end
  if after == '' and changes[at] == webhooks then redis.call('ZADD', turns, 0, field) end
end
for number = shards + hashes + 1, #places do redis.call('UNLINK', places[number]) end
local newest = tonumber(redis.call('HGET', event_ids, 'set') or 0)
for set = math.max(0, newest - 5), newest do redis.call('UNLINK', event_ids .. ':' .. set) end
redis.call('UNLINK', event_ids)
for number = 1, shards do redis.call('XADD', places[number], '*', 'kind', kind, 'stream', stream, 'body', body) end
return 1
