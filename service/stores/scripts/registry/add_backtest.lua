--! keys: backtests, order, number
--! args: id, record
-- Adds a backtest behind all others; one that is there stays where it is.
if redis.call('HSETNX', backtests, id, record) == 1 then
  redis.call('ZADD', order, redis.call('INCR', number), id)
end
return 1
