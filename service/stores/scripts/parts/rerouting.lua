-- rerouted(routes, users, stream, pattern, route): stores the route that a pattern uses ('': none), and computes the
-- routes of its stream again.
local function rerouted(routes, users, stream, pattern, route)
  if route == '' then redis.call('HDEL', users, pattern) else redis.call('HSET', users, pattern, route) end
  local seen, names = {}, {}
  for _, name in ipairs(redis.call('HVALS', users)) do
    if not seen[name] then names[#names + 1] = name end
    seen[name] = true
  end
  table.sort(names)
  if #names == 0 then redis.call('HDEL', routes, stream)
  else redis.call('HSET', routes, stream, table.concat(names, ' ')) end
end
