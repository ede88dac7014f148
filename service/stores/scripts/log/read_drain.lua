--! keys: marks
-- Returns the clock of Redis, and the time and amount of each of the latest matchings, the latest first.
return {redis.call('TIME'), redis.call('LRANGE', marks, 0, -1)}
