--! keys: layout
--! args: format, shards, identity
-- Gives a new log its layout; a log that has one keeps it. Returns the layout.
redis.call('HSETNX', layout, 'format', format)
redis.call('HSETNX', layout, 'shards', shards)
redis.call('HSETNX', layout, 'identity', identity)
return redis.call('HMGET', layout, 'format', 'shards', 'identity', 'generation', 'former')
