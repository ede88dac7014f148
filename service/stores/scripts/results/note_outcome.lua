--! keys: outcomes, times
--! args: letter, outcome, at_us, kept
-- Notes what happened to a dead letter that was sent again; beyond ``kept``, the oldest outcomes are removed.
redis.call('HSET', outcomes, letter, outcome)
redis.call('ZADD', times, at_us, letter)
local beyond = redis.call('ZCARD', times) - tonumber(kept)
if beyond > 0 then
  local oldest = redis.call('ZPOPMIN', times, beyond)
  for i = 1, #oldest, 2 do redis.call('HDEL', outcomes, oldest[i]) end
end
return 1
