--! uses: counting, timing, fitting, remembering, knowing, listing, living
--! keys: kept_answer, dead_letters, dead_letter_size, dead_letter_counts, appended, matched, routes, times, layout
--! keys: contexts, event_ids, duplicates, streams, shards*
--! args: answer, answer_ms, stream, dead_letters_kept, feed_mark, most_events, most_bytes, known_routes, newest_us
--! args: shard_count, context, digests, digest_bytes, ids_kept, ids_ms, dropped, since, rest*
-- Appends a batch of events with its dead letters, all or nothing, once.
-- ``kept_answer``: the key of the answer; for a feed, the key of its mark, which must equal ``feed_mark`` ('': no
-- feed). ``known_routes`` and ``shard_count``: the routes and shards for which the batch was divided. ``newest_us``: ''
-- without events. ``context``: '' if the request is not traced. ``since``: when the stream was declared; answers of
-- former streams of its name do not count; '*': all count. ``rest``: for each shard the body, the number of its events
-- and its route; then for each dead letter the record and its counter.
-- Returns the earlier answer; or false and the positions; or false, nothing, and the reason: the exceeded limit, the
-- routes in use, the known events, or 'gone' if the stream is not that of ``since``; or the reply of ``misfit``.
local moment = redis.call('TIME')
local clock_ms = moment[1] * 1000 + math.floor(moment[2] / 1000)
-- An answer of an older release names no declaration; when it was kept follows from the rest of its life.
local function is_current(given)
  if since == '*' then return true end
  local named = string.match(given, '"since":(%d+)')
  if named then return named == since end
  return clock_ms - answer_ms + redis.call('PTTL', kept_answer) >= tonumber(since)
end
local earlier = redis.call('GET', kept_answer)
if feed_mark ~= '' then
  if earlier ~= feed_mark then return {earlier or ''} end
elseif earlier and is_current(earlier) then
  return {earlier}
end
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if since ~= '*' and since ~= since_of(streams, stream) then return {false, {}, {'gone'}} end
local used = redis.call('HGET', routes, stream) or ''
if used ~= known_routes then return {false, {}, {'routes', used}} end
local ids = ids_of(digests, digest_bytes)
local known = known_ids(event_ids, ids)
if #known > 0 then return {false, {}, {'known', known}} end
local events, bytes = 0, 0
for at = 1, 3 * #shards, 3 do
  events, bytes = events + tonumber(rest[at + 1]), bytes + #rest[at]
end
local full = events > 0 and limited(appended, matched, events, bytes, tonumber(most_events), tonumber(most_bytes))
if full then return {false, {}, full} end
for at = 3 * #shards + 1, #rest, 2 do
  list(dead_letters, dead_letter_size, tonumber(dead_letters_kept), 1, 'record', rest[at])
  redis.call('HINCRBY', dead_letter_counts, rest[at + 1], 1)
end
-- Entries with events have rising positions over all shards, so that one position is a cursor for all of them; the
-- clock of the server may be set back. A shard may have a newer control record.
local newest = redis.call('HGET', appended, 'newest') or '0-0'
local function rising(position)
  local ms, number = string.match(position, '^(%d+)-(%d+)$')
  if clock_ms > tonumber(ms) then return string.format('%.0f-0', clock_ms) end
  return string.format('%s-%.0f', ms, number + 1)
end
local function added(shard, entry)
  local found = redis.pcall('XADD', shard, rising(newest), unpack(entry))
  if type(found) == 'table' then
    local about = redis.call('XINFO', 'STREAM', shard)
    for at = 1, #about, 2 do
      if about[at] == 'last-generated-id' then newest = about[at + 1] end
    end
    found = redis.call('XADD', shard, rising(newest), unpack(entry))
  end
  newest = found
  return found
end
local positions = {}
for i, shard in ipairs(shards) do
  local body, count, route = rest[3 * i - 2], rest[3 * i - 1], rest[3 * i]
  local upto = counted(appended, string.match(shard, '%d+$'), tonumber(count), #body)
  local entry = {'kind', 'events', 'stream', stream, 'body', body, 'upto', upto}
  if route ~= '' then entry[9], entry[10] = 'route', route end
  positions[i] = added(shard, entry)
end
if #shards > 0 then redis.call('HSET', appended, 'newest', newest) end
know_ids(event_ids, ids, tonumber(ids_kept), ids_ms)
if dropped ~= '0' then redis.call('HINCRBY', duplicates, stream, dropped) end
if newest_us ~= '' then timed(times, stream, newest_us) end
if context ~= '' then remember(contexts, cjson.decode(context), positions) end
if feed_mark ~= '' then redis.call('SET', kept_answer, answer)
else redis.call('SET', kept_answer, answer, 'PX', answer_ms) end
return {false, positions}
