--! keys: backtests, order, number
--! args: id, record
-- Adds a backtest after all others; an existing one keeps its place.
if redis.call('HSETNX', backtests, id, record) == 1 then
  redis.call('ZADD', order, redis.call('INCR', number), id)
end
return 1
