--! keys: marks
-- Returns the clock of Redis, and the time and volume of each of the latest matched micro-batches, latest first.
return {redis.call('TIME'), redis.call('LRANGE', marks, 0, -1)}
