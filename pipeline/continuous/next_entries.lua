--! keys: places*
--! args: most_entries, most_bytes, afters*
-- ``places`` are the log and the stops of each shard, in turn. For each shard the number of its stops, and its next
-- entries after a position: at most ``most_entries`` and, but for the first one, ``most_bytes``. Shards after those
-- whose entries have ``most_bytes`` together get none, so that the reply stays small.
local entries, bytes, total = tonumber(most_entries), tonumber(most_bytes), 0
local found = {}
for shard, last in ipairs(afters) do
  local page, size = {}, 0
  while total < bytes and #page < entries do
    local entry = redis.call('XRANGE', places[2 * shard - 1], '(' .. last, '+', 'COUNT', 1)[1]
    if not entry then break end
    for _, field in ipairs(entry[2]) do size = size + #field end
    if #page > 0 and size > bytes then break end
    page[#page + 1], last = entry, entry[1]
  end
  found[shard], total = {redis.call('HLEN', places[2 * shard]), page}, total + size
end
return found
