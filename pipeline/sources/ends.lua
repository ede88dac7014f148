--! keys: layout, shards*
--! args: most_entries, most_bytes, afters*
-- Finds the last position of each shard's next entries inside the server, so that their bodies do not travel twice. At
-- most ``most_entries`` (0: no limits) and, but for the first one, ``most_bytes`` of each shard. Returns nothing where the
-- log has another number of shards.
local entries, bytes = tonumber(most_entries), tonumber(most_bytes)
local count = redis.call('HGET', layout, 'shards')
if count and tonumber(count) ~= #shards then return {} end
local ends = {}
for shard, key in ipairs(shards) do
  ends[shard] = afters[shard]
  if entries == 0 then
    local last = redis.call('XREVRANGE', key, '+', '(' .. ends[shard], 'COUNT', 1)
    if #last > 0 then ends[shard] = last[1][1] end
  else
    local size = 0
    for i, entry in ipairs(redis.call('XRANGE', key, '(' .. ends[shard], '+', 'COUNT', entries)) do
      for _, field in ipairs(entry[2]) do size = size + #field end
      if i > 1 and size > bytes then break end
      ends[shard] = entry[1]
    end
  end
end
return ends
