-- Ids of events that a stream has accepted, in a sequence of sets; ``key`` has the number of the newest set.
-- ids_of(packed, size): the digests in a byte string, ``size`` bytes each.
-- known_ids(key, ids): the numbers, from 0, of the ids that are known.
-- know_ids(key, ids, most, life_ms): adds ids; about ``most`` of a stream are kept.
local id_sets = 4
local function ids_of(packed, size)
  local ids = {}
  for at = 1, #packed, size do ids[#ids + 1] = string.sub(packed, at, at + size - 1) end
  return ids
end
local function known_ids(key, ids)
  local newest, known = tonumber(redis.call('HGET', key, 'set') or 0), {}
  for set = math.max(0, newest - id_sets), newest do
    for first = 1, #ids, 4000 do
      local last = math.min(first + 3999, #ids)
      for i, is_in in ipairs(redis.call('SMISMEMBER', key .. ':' .. set, unpack(ids, first, last))) do
        if is_in == 1 then known[#known + 1] = first + i - 2 end
      end
    end
  end
  return known
end
local function know_ids(key, ids, most, life_ms)
  if #ids == 0 then return end
  local set = tonumber(redis.call('HGET', key, 'set') or 0)
  if redis.call('SCARD', key .. ':' .. set) >= most / id_sets then
    set = redis.call('HINCRBY', key, 'set', 1)
    redis.call('UNLINK', key .. ':' .. (set - id_sets - 1))
  elseif set == 0 then
    redis.call('HSET', key, 'set', 0)
  end
  for first = 1, #ids, 4000 do
    redis.call('SADD', key .. ':' .. set, unpack(ids, first, math.min(first + 3999, #ids)))
  end
  redis.call('PEXPIRE', key .. ':' .. set, life_ms)
end
