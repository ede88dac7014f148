--! keys: appended, shards*
-- Returns for each shard of the log: the first kept entry ('': none), the last generated id, and '1' if
-- entries before the first were removed, or the server does not report it. Then the newest position of an entry with
-- events ('': none since a release that notes it).
local found = {}
for number, shard in ipairs(shards) do
  found[number] = {'', '0-0', '0'}
  if redis.call('EXISTS', shard) == 1 then
    local info, about = redis.call('XINFO', 'STREAM', shard), {}
    for at = 1, #info, 2 do about[info[at]] = info[at + 1] end
    local first = about['first-entry'] and about['first-entry'][1] or ''
    found[number] = {first, about['last-generated-id'], about['entries-added'] == about['length'] and '0' or '1'}
  end
end
return {found, redis.call('HGET', appended, 'newest') or ''}
