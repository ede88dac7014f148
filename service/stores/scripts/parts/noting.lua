-- superseded(noted, epoch): an error for a batch (``epoch``) that is not the noted one: the driver that noted it was
-- stopped, and another driver has written it. Nil for micro-batches, which are not noted.
local function superseded(noted, epoch)
  local latest = redis.call('GET', noted)
  if not latest or 'epoch:' .. latest == epoch then return nil end
  return redis.error_reply('SUPERSEDED by the batch ' .. latest .. ' of another driver: ' .. epoch)
end
