-- is_gone(routes, stream): whether a stream was removed and not declared again: '-' is in the place of its routes.
local function is_gone(routes, stream) return redis.call('HGET', routes, stream) == '-' end
