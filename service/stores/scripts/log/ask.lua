--! uses: fitting, leaving
--! keys: layout, routes, job, shards*
--! args: stream, shard_count, life_ms, asked*
-- Asks these shards questions that continuous tasks answer; ``asked`` has the id and the body of each in turn.
-- ``until`` is the newest entry of the shard's log, which must be matched before the answer. Expired questions are
-- removed. Returns 1; 0 if no such tasks run; 'gone' if the stream was removed; or the reply of ``misfit``.
local unfit = misfit(layout, shard_count)
if unfit then return unfit end
if is_gone(routes, stream) then return 'gone' end
if redis.call('EXISTS', job) == 0 then return 0 end
local time = redis.call('TIME')
local oldest = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - life_ms)
for _, shard in ipairs(shards) do
  local newest = redis.call('XREVRANGE', shard, '+', '-', 'COUNT', 1)[1]
  local questions = shard .. ':questions'
  for one = 1, #asked, 2 do
    redis.call('XADD', questions, 'MINID', oldest, '*', 'id', asked[one], 'stream', stream, 'body', asked[one + 1],
      'until', newest and newest[1] or '0-0')
  end
  redis.call('PEXPIRE', questions, life_ms)
end
return 1
