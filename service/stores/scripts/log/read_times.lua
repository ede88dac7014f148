--! keys: times
-- Returns the clock of Redis and the times of all streams, as of one moment.
return {redis.call('TIME'), redis.call('HGETALL', times)}
