--! keys: webhooks, turns, belongings*
--! args: id, before
-- Removes a webhook with the data that belongs to it, and gives it a turn, so that its deliveries are dropped; 0:
-- another writer came first.
if redis.call('HGET', webhooks, id) ~= before then return 0 end
redis.call('HDEL', webhooks, id)
for _, key in ipairs(belongings) do redis.call('DEL', key) end
redis.call('ZADD', turns, 0, id)
return 1
