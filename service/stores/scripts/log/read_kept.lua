--! keys: shards*
-- Of each shard of the log: the first entry that is kept ('': there is none), the last place that was given, and '1' where
-- entries before the first were removed, or the server does not know.
local found = {}
for number, shard in ipairs(shards) do
  found[number] = {'', '0-0', '0'}
  if redis.call('EXISTS', shard) == 1 then
    local told, about = redis.call('XINFO', 'STREAM', shard), {}
    for at = 1, #told, 2 do about[told[at]] = told[at + 1] end
    local first = about['first-entry'] and about['first-entry'][1] or ''
    found[number] = {first, about['last-generated-id'], about['entries-added'] == about['length'] and '0' or '1'}
  end
end
return found
