-- remember(base, request, positions): stores which traced request brought the events of the parts that were appended at
-- these positions. ``request.parts``: for each part its shard, then id and time of each event.
local function remember(base, request, positions)
  local at_ms = string.match(positions[1], '^%d+')
  local key = base .. ':' .. string.format('%d', math.floor(at_ms / request.life_ms))
  local room = math.max(0, request.most - redis.call('HLEN', key))
  for i, part in ipairs(request.parts) do
    local head, tail = request.context .. ' ', ' ' .. part[1] .. ' ' .. positions[i]
    local last = math.min(#part, 2 * room + 1)
    for at = 3, last, 2 do part[at] = head .. part[at] .. tail end
    for at = 2, last, 1000 do redis.call('HSET', key, unpack(part, at, math.min(at + 999, last))) end
    room = room - math.max(0, last - 1) / 2
  end
  redis.call('PEXPIRE', key, 2 * request.life_ms)
end
