--! keys: versions, changes*
--! args: contents, life_s, fields*
-- Forgets versions of tables: these fields of the hash ``versions``, and their hashes of changed rows. Their content,
-- whose key is ``contents`` and its digest, expires after ``life_s``, unless another version has the same content. The
-- content of every other version lasts.
local forgotten = {}
for _, field in ipairs(fields) do
  local record = redis.call('HGET', versions, field)
  if record then forgotten[cjson.decode(record).digest] = true end
  redis.call('HDEL', versions, field)
end
for _, key in ipairs(changes) do redis.call('UNLINK', key) end
for _, record in ipairs(redis.call('HVALS', versions)) do
  local digest = cjson.decode(record).digest
  forgotten[digest] = nil
  redis.call('PERSIST', contents .. digest)
end
for digest in pairs(forgotten) do redis.call('EXPIRE', contents .. digest, life_s) end
return 1
