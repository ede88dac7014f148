--! keys: draft, content
--! args: place, pieces, life_s, piece
-- Appends a piece to a draft of a table's content, unless the draft has the piece already. A draft of all ``pieces``
-- becomes the content, unless this is complete. Content that is new expires after ``life_s``, as the draft does; content
-- that is replaced lasts as before. Returns 1; 0 if the draft has lost earlier pieces.
if redis.call('LLEN', content) == tonumber(pieces) then
  redis.call('UNLINK', draft)
  return 1
end
if redis.call('LLEN', draft) == tonumber(place) then
  redis.call('RPUSH', draft, piece)
  redis.call('EXPIRE', draft, life_s)
end
local kept = redis.call('LLEN', draft)
if kept == tonumber(pieces) then
  local lasts = redis.call('TTL', content) == -1
  redis.call('RENAME', draft, content)
  if lasts then redis.call('PERSIST', content) end
end
return kept > tonumber(place) and 1 or 0
