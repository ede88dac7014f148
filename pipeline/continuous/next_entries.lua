--! keys: wake, places*
--! args: most_entries, most_bytes, most_questions, afters*
-- ``places`` are the log, the stops and the questions of each shard, in turn, ``afters`` a position in its log and one in
-- its questions. Returns the newest entry of ``wake`` ('': none), and for each shard the number of its stops; its next
-- entries: at most ``most_entries`` and, but for the first one, ``most_bytes``; and its next questions. Shards after
-- those whose entries have ``most_bytes`` together get no entries, so that the reply stays small.
local entries, bytes, total = tonumber(most_entries), tonumber(most_bytes), 0
local found = {}
for shard = 1, #afters / 2 do
  local log, last = places[3 * shard - 2], afters[2 * shard - 1]
  local page, size = {}, 0
  while total < bytes and #page < entries do
    local entry = redis.call('XRANGE', log, '(' .. last, '+', 'COUNT', 1)[1]
    if not entry then break end
    for _, field in ipairs(entry[2]) do size = size + #field end
    if #page > 0 and size > bytes then break end
    page[#page + 1], last = entry, entry[1]
  end
  local asked = redis.call('XRANGE', places[3 * shard], '(' .. afters[2 * shard], '+', 'COUNT', most_questions)
  found[shard], total = {redis.call('HLEN', places[3 * shard - 1]), page, asked}, total + size
end
local woken = redis.call('XREVRANGE', wake, '+', '-', 'COUNT', 1)[1]
return {woken and woken[1] or '', found}
