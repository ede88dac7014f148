-- list(...): adds an entry of some rows to a capped list of at least ``kept`` rows, without the oldest beyond.
-- An entry is one ``record``, or a ``block`` with the number of its rows. ``size``: the key of the number of all rows,
-- which lists of earlier releases do not have; their entries are records.
local function list(entries, size, kept, rows, form, value)
  local total = tonumber(redis.call('GET', size) or redis.call('XLEN', entries)) + rows
  redis.call('XADD', entries, '*', form, value, 'rows', rows)
  while total > kept do
    local oldest = redis.call('XRANGE', entries, '-', '+', 'COUNT', 1)[1]
    if not oldest then total = 0 break end
    local left = total - (oldest[2][3] and tonumber(oldest[2][4]) or 1)
    if left < kept then break end
    redis.call('XDEL', entries, oldest[1])
    total = left
  end
  redis.call('SET', size, total)
end
