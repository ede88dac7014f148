--! uses: leaving
--! keys: webhooks, names, mark, routes
--! args: id, name, stream, record
-- Adds a webhook under its id, and under its name if it has one; 0: another webhook has the name; 'gone': the stream
-- whose results it receives ('': all) was removed. ``mark``: the readers' mark, which is deleted, so that they read
-- again.
if is_gone(routes, stream) then return 'gone' end
if name ~= '' then
    local known = redis.call('HGET', names, name)
    if known and known ~= id and redis.call('HEXISTS', webhooks, known) == 1 then return 0 end
    redis.call('HSET', names, name, id)
end
redis.call('HSET', webhooks, id, record)
redis.call('DEL', mark)
return 1
