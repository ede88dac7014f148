-- since_of(streams, stream): when a stream was declared, in milliseconds; '' if it is not declared. A caller that has
-- read another time has worked for a stream that was removed.
local function since_of(streams, stream)
  local record = redis.call('HGET', streams, stream)
  return record and (string.match(record, '"since_ms":(%d+)') or '0') or ''
end
