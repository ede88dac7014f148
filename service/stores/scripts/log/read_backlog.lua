--! keys: appended, matched
-- Returns the counters of both, as of one moment.
local names = {'entries', 'events', 'bytes'}
return {redis.call('HMGET', appended, unpack(names)), redis.call('HMGET', matched, unpack(names))}
