--! keys: times
-- Returns the clock of Redis and the times of all streams, read atomically.
return {redis.call('TIME'), redis.call('HGETALL', times)}
