--! keys: marks
-- Returns the clock of Redis and how much was matched when, the latest first.
return {redis.call('TIME'), redis.call('LRANGE', marks, 0, -1)}
