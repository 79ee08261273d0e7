-- cancel: have runs of a job end for good, once however often the request arrives.
--
-- The caller names the runs that it saw live, so a copy that comes late ends no later run. `x:<uuid>` in the ledger marks a
-- run until it is settled. Meanwhile extend tells the run's replica, and its tick does not become due again afterwards.
--
-- KEYS  1 ledger  2 memo of the request  3 acts of operators: if it is given, the last of ARGV is the act to be kept there
-- ARGV  1 channel of the nudges  2 job  3.. uuids of runs
-- returns {OK, now, uuids of those that lived}, or {UNKNOWN, now}
local ledger, memo, acts = KEYS[1], KEYS[2], KEYS[3]
local act = acts and table.remove(ARGV)

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local before = redis.call('GET', memo)                     -- asked again, the same answer, for a day
if before then return {'OK', now, before} end
if not redis.call('HGET', ledger, 'born') then return {'UNKNOWN', now} end

local lived = {}
for i = 3, #ARGV do
  if redis.call('HGET', ledger, 'r:' .. ARGV[i]) then
    redis.call('HDEL', ledger, 'x:' .. ARGV[i])            -- first: it is not refused when Redis' memory is full, and after it nothing is
    redis.call('HSET', ledger, 'x:' .. ARGV[i], now)
    table.insert(lived, ARGV[i])
  end
end
local answer = table.concat(lived, ' ')
if answer ~= '' then
  redis.call('SET', memo, answer, 'PX', 86400000)
  redis.pcall('PUBLISH', ARGV[1], 'stop ' .. ARGV[2])
  if act then redis.pcall('XADD', acts, 'MAXLEN', '~', '1000', '*', 'act', act, 'made', answer) end
end
return {'OK', now, answer}
