--! keys: range
--! args: run_id, noted
-- Notes the range of a batch, unless the server has been started again since it had ``run_id``. Returns 1; 0.
if not string.find(redis.call('INFO', 'server'), 'run_id:' .. run_id, 1, true) then return 0 end
redis.call('SET', range, noted)
return 1
