-- cancel: have runs of a job end for good, or drop what waits of it by hand, once however often the request arrives.
--
-- The caller names the runs that it saw live, so a copy that comes late ends no later run. `x:<uuid>` in the ledger marks a
-- run until it is settled, as Replace does. Meanwhile extend tells the run's replica, and its tick does not become due again afterwards.
--
-- KEYS  1 ledger  2 memo of the request  3 acts of operators: if it is given, the last of ARGV is the act to be kept there
--       4 due  5 history of the job; both are given to drop what waits
-- ARGV  1 channel of the nudges  2 job  3.. uuids of runs; or until: after this Redis time this copy drops nothing, and
--       how many entries the history keeps
-- returns {OK, now, uuids of those that lived, or ticks that waited}, {PAST, now}, or {UNKNOWN, now}
local ledger, memo, acts, due, job = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2]
local act = acts and table.remove(ARGV)

local before = redis.call('GET', memo)                     -- asked again, the same answer, for a day
if before then return {'OK', now, before} end
if not redis.call('HGET', ledger, 'born') then redis.pcall('PUBLISH', ARGV[1], 'due') return {'UNKNOWN', now} end -- who lives registers it
if due and now > tonumber(ARGV[3]) then return {'PAST', now} end

local lived, open = {}, due and redis.call('HGET', ledger, 'open') or ''
for _, m in ipairs(due and redis.call('ZRANGE', due, 0, -1) or {}) do
  local tick, whose, kind, id = string.match(m, '^(%d+) (%S+) (%l+)%S* %d+ %d+ %d+ (%S+)')
  if whose == job and (kind == 'manual' or kind == 'backfill') then
    redis.call('ZREM', due, m)
    if string.find(open, ' ' .. tick .. '*', 1, true) then open = string.gsub(open, ' ' .. tick .. '%*%S*', '', 1) end
    redis.pcall('XADD', KEYS[5], 'MAXLEN', '~', ARGV[4], '*', 'run', string.format(
      '{"job":"%s","tick":%s,"run":"%s","kind":"%s","outcome":"cancelled","ended":%d}', job, tick, id, kind, now))
    table.insert(lived, tick)
  end
end
if lived[1] and open ~= '' then redis.call('HSET', ledger, 'open', open) end
for i = 3, due and 0 or #ARGV do
  if redis.call('HGET', ledger, 'r:' .. ARGV[i]) then
    redis.call('HDEL', ledger, 'x:' .. ARGV[i])            -- first: it is not refused when Redis' memory is full, and after it nothing is
    redis.call('HSET', ledger, 'x:' .. ARGV[i], 'CANCELLED')
    table.insert(lived, ARGV[i])
  end
end
local answer = table.concat(lived, ' ')
if answer ~= '' then
  redis.call('SET', memo, answer, 'PX', 86400000)
  redis.pcall('PUBLISH', ARGV[1], 'stop ' .. job)
  if act then redis.pcall('XADD', acts, 'MAXLEN', '~', '1000', '*', 'act', act, 'made', due and #lived or answer) end
end
return {'OK', now, answer}
