--! uses: living
--! keys: streams, marks, matched
--! args: positions, names*
-- Returns for each derived stream the time of its declaration, and its marks by shard; then for each shard in the JSON
-- list ``positions`` the position up to which it is matched.
local shards = cjson.decode(positions)
local found = {}
for i, stream in ipairs(names) do
  found[i] = {since_of(streams, stream)}
  for j, shard in ipairs(shards) do found[i][j + 1] = redis.call('HGET', marks, shard .. ':' .. stream) or '' end
end
for j, shard in ipairs(shards) do found[#names + j] = redis.call('HGET', matched, 'position:' .. shard) or '0-0' end
return found
