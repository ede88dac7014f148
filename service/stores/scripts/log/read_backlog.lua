--! keys: appended, matched
-- Returns the counters of appended and matched volumes, read atomically.
local names = {'entries', 'events', 'bytes'}
return {redis.call('HMGET', appended, unpack(names)), redis.call('HMGET', matched, unpack(names))}
