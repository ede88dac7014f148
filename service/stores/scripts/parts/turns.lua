-- room_of(...): the number of attempts that may begin at a webhook, and from which time on; an open circuit has room
-- for one, and a receiver that asked for a pause (``rest_us``) gets no attempt before the pause ends.
-- next_turn(...): the time at which the webhook is due to be served again; nil: never.
-- set_turn(turns, webhook, turn): stores this time.
local function room_of(waiting, sending, circuit, cap, threshold)
  local state = redis.call('HMGET', circuit, 'failures', 'until_us', 'rest_us')
  local is_open = tonumber(state[1] or '0') >= tonumber(threshold)
  local room = (is_open and 1 or tonumber(cap)) - redis.call('ZCARD', sending)
  return room, math.max(is_open and tonumber(state[2] or '0') or 0, tonumber(state[3] or '0'))
end
local function next_turn(waiting, sending, circuit, cap, threshold)
  local room, opens_us = room_of(waiting, sending, circuit, cap, threshold)
  local due = tonumber(redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2])
  local lease = tonumber(redis.call('ZRANGE', sending, 0, 0, 'WITHSCORES')[2])
  local turn = nil
  if due and room > 0 then turn = math.max(due, opens_us) end
  if lease and (not turn or lease < turn) then turn = lease end
  return turn
end
local function set_turn(turns, webhook, turn)
  if turn then redis.call('ZADD', turns, turn, webhook) else redis.call('ZREM', turns, webhook) end
end
