--! keys: shards*
--! args: most_entries, most_bytes, afters*
-- The next entries of each shard after a position: at most ``most_entries`` and, but for the first one, ``most_bytes``.
local found = {}
for shard, key in ipairs(shards) do
  local entries = redis.call('XRANGE', key, '(' .. afters[shard], '+', 'COUNT', most_entries)
  local size = 0
  for i, entry in ipairs(entries) do
    for _, field in ipairs(entry[2]) do size = size + #field end
    if i > 1 and size > tonumber(most_bytes) then
      for j = #entries, i, -1 do entries[j] = nil end
      break
    end
  end
  found[shard] = entries
end
return found
