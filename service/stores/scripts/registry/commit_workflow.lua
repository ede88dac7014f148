--! keys: workflows, versions, models, findings
--! args: name, before, after, version*
-- Replaces a record, if it is still the one that was read ('': none); 0: another writer came first. ``version``,
-- if the record is a new version: its field, the model and the findings.
if (redis.call('HGET', workflows, name) or '') ~= before then return 0 end
redis.call('HSET', workflows, name, after)
if #version > 0 then
  redis.call('HSET', versions, version[1], after)
  redis.call('HSET', models, version[1], version[2])
  redis.call('HSET', findings, version[1], version[3])
end
return 1
