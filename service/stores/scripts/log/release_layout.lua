--! keys: layout
--! args: token
-- Lets entries be appended again; 0: another process holds the log.
if redis.call('HGET', layout, 'resharding') ~= token then return 0 end
return redis.call('HDEL', layout, 'resharding')
