--! keys: outcomes, times
--! args: letter, outcome, at_us, kept
-- Stores the result of resending a dead letter; beyond ``kept``, the oldest results are removed.
redis.call('HSET', outcomes, letter, outcome)
redis.call('ZADD', times, at_us, letter)
local beyond = redis.call('ZCARD', times) - tonumber(kept)
if beyond > 0 then
  local oldest = redis.call('ZPOPMIN', times, beyond)
  for i = 1, #oldest, 2 do redis.call('HDEL', outcomes, oldest[i]) end
end
return 1
