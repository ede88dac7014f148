-- superseded(noted, epoch): an error if the batch ``epoch`` is not the noted one, because its driver was suspended and
-- another driver has written the batch. Nil for micro-batches, which are not noted.
local function superseded(noted, epoch)
  local latest = redis.call('GET', noted)
  if not latest or 'epoch:' .. latest == epoch then return nil end
  return redis.error_reply('SUPERSEDED by the batch ' .. latest .. ' of another driver: ' .. epoch)
end
