--! keys: layout
--! args: format, shards, identity
-- Stores the layout of a new log; an existing layout is kept. Returns the layout.
redis.call('HSETNX', layout, 'format', format)
redis.call('HSETNX', layout, 'shards', shards)
redis.call('HSETNX', layout, 'identity', identity)
return redis.call('HMGET', layout, 'format', 'shards', 'identity', 'generation', 'former', 'unfinished')
