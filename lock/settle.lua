-- settle: the ways in which a run leaves `running`.
--   finish    it ran to its end
--   requeue   it ran and was cut short, and is to be run again
--   handover  its replica could not even start it, and gives the tick to another, or, without a member, up
--   abandon   its replica gave up without a clear answer, and knows that it never started
--   reap      its replica is gone: a watcher saw the lease unchanged for a whole ttl
--
-- KEYS  1 lock  2 ledger  3 running  4 due  5 runs  6 failures: given if the history entry belongs there too
-- ARGV  1 verb  2 uuid of the run  3 job  4 slot: '' or, under Allow, ':<tick>'
--       5 how long the lock outlives the run (ms; 0 = delete now)    6 history entry; '' = none
--       What follows may be left out:
--       7 due member that hands the tick on; '' = none (finish: the one a takeover may have added, to be taken back)
--       8 not before: delay of that member (ms)    9 lease end that the watcher saw (reap)
-- returns {OK | LATE | NONE | MOVED, now, newest waiting tick that was set free}
--   LATE: it had been reaped; NONE: nothing is known of it; MOVED: the lease was extended meanwhile
local lock, ledger, running, due, runs, failures = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local verb, uuid, job, slot, entry, again, wait = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6], ARGV[7] or '', ARGV[8] or 0
local member = uuid .. ' ' .. job

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'run' .. slot, 'pend', 'queued')
local mine, pend, queued = h[1] == uuid, h[2], h[3]

local nudge = false                                        -- something became due now
local behind = string.find(job, '^timer:') and 1e15 or 0   -- the score of a timer is so much more than its time
local function enqueue(m, delay)
  redis.call('ZADD', due, behind + now + delay, m)
  nudge = nudge or tonumber(delay) == 0
end
local function wake()
  if nudge then redis.pcall('PUBLISH', string.gsub(due, 'due$', 'events'), 'due') end
end

if verb == 'reap' then
  if tonumber(redis.call('ZSCORE', running, member) or -1) ~= tonumber(ARGV[9]) then return {'MOVED', now, 0} end
elseif not mine then
  local interrupted = redis.call('HGET', ledger, 'interrupted') or ''
  local at = string.find(interrupted, uuid, 1, true)       -- the newest few that were reaped, each followed by a blank
  if verb == 'finish' then                                 -- the takeover is not needed any more
    if again ~= '' then redis.call('ZREM', due, again) end
  elseif at and verb ~= 'requeue' and again ~= '' then     -- recorded as interrupted, but its replica knows that it never started
    enqueue(again, wait)
  end
  if at then
    redis.call('HSET', ledger, 'interrupted', string.sub(interrupted, 1, at - 1) .. string.sub(interrupted, at + #uuid + 1))
  end
  wake()
  return {at and 'LATE' or 'NONE', now, 0}
end

-- First, since HDEL is not refused when Redis' memory is full, and after a first write nothing is: a run must be able to end.
local stop = mine and (verb == 'reap' or verb == 'requeue') and redis.call('HGET', ledger, 'stop')
if mine then redis.call('HDEL', ledger, 'r:' .. uuid, 'run' .. slot, 'stop') else redis.call('HDEL', ledger, 'r:' .. uuid) end

-- The entry, not the lock, is the authority: whoever removes it wakes what waited behind the run.
local freed = 0
if mine and (pend or queued) then
  redis.call('HDEL', ledger, 'pend', 'queued')
  local waited = ' ' .. job .. ' catchup 1 0 ' .. uuid     -- what follows the tick in a due member
  if queued then
    enqueue(queued .. waited, 0)
    freed = tonumber(queued)
  end
  local tick, newest = tonumber(redis.call('HGET', ledger, 'tick') or 0), 0
  for refused in string.gmatch(pend or '', '%d+') do newest = math.max(newest, tonumber(refused)) end
  if newest > tick then
    if verb == 'finish' or verb == 'requeue' then          -- a true overlap: settled
      redis.call('HSET', ledger, 'tick', newest, 'overlap', newest)
    else                                                   -- it was none: the run that was in the way never ran, or died
      for refused in string.gmatch(pend, '%d+') do
        if tonumber(refused) > tick then enqueue(refused .. waited, 0) end
      end
      redis.call('HSET', ledger, 'tick', newest)
      freed = newest
    end
  end
end
if again ~= '' and verb ~= 'finish' and not stop then enqueue(again, wait) end
if verb == 'reap' and again == '' and not stop then        -- what is handed on already needs no evidence that it never started
  local interrupted = redis.call('HGET', ledger, 'interrupted') or ''
  redis.call('HSET', ledger, 'interrupted', string.sub(uuid .. ' ' .. interrupted, 1, 8 * (#uuid + 1)))
end

redis.call('ZREM', running, member)
if redis.call('GET', lock) == uuid then
  if ARGV[5] == '0' then redis.call('DEL', lock) else redis.call('PEXPIRE', lock, ARGV[5]) end
end
if entry ~= '' then                                        -- history is not worth a failed finish
  redis.pcall('HSET', ledger, 'done', entry)
  redis.pcall('XADD', runs, 'MAXLEN', '~', '10000', '*', 'run', entry)
  if failures then redis.pcall('XADD', failures, 'MAXLEN', '~', '10000', '*', 'run', entry) end
end
wake()
return {'OK', now, freed}
