-- book: count ticks that nobody fired by their fate, each once over all replicas, however often the request arrives.
--
-- KEYS  1 ledger  2 history of the job  3 memo of the request
-- ARGV  1 the gaps that the caller has read  2 how many missed ticks lie in them  3 how many entries the history keeps
--       4.. for each interval with ticks of the schedule: fate, how many ticks, and what is kept of them
-- returns {OK, now, 1 if this request counted them, else 0}
local ledger, history, memo, read = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

local h = redis.call('HMGET', ledger, 'gaps', 'missedToday')
local gaps = h[1] or ''

if redis.call('GET', memo) then return {'OK', now, 1} end
if read == '' or string.sub(gaps, 1, #read) ~= read then return {'OK', now, 0} end
local day = math.floor(now / 86400000)
local today = string.match(h[2] or '', '^' .. day .. ' (%d+)$') or 0
redis.call('HSET', ledger, 'gaps', string.sub(gaps, #read + 1), 'missedToday', day .. ' ' .. today + ARGV[2])
redis.call('SET', memo, 'booked', 'PX', 86400000)
for i = 4, #ARGV, 3 do
  local field = 'fate:' .. ARGV[i]
  redis.call('HSET', ledger, field, (tonumber(redis.call('HGET', ledger, field)) or 0) + ARGV[i + 1])
  redis.call('XADD', history, 'MAXLEN', '~', ARGV[3], '*', 'tick', ARGV[i + 2])
  if ARGV[i] == 'missed' then redis.call('HSET', ledger, 'lastMissed', ARGV[i + 2]) end
end
return {'OK', now, 1}
