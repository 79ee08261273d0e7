-- settle: the ways in which a run leaves `running`.
--   finish    it ran to its end
--   requeue   it ran and was cut short, and is to be run again
--   handover  its replica could not even start it, and gives the tick to another
--   abandon   its replica gave up without a clear answer, and knows that it never started
--   reap      its replica is gone: a watcher saw the lease unchanged for a whole ttl
--
-- KEYS  1 lock  2 ledger  3 running  4 due  5 runs
-- ARGV  1 verb  2 uuid of the run  3 job  4 slot: '' or, under Allow, ':<tick>'
--       5 how long the lock outlives the run (ms; 0 = delete now)
--       6 due member that hands the tick on, '' = none (finish: the one a takeover may have added, to be taken back)
--       7 not before: delay of that member (ms)    8 what follows the tick in the due members of what waited behind the run
--       9 lease end that the watcher saw (reap)    10.. history entry: field, value, …
-- returns {OK | LATE | NONE | MOVED, now, newest waiting tick that was set free}
--   LATE: it had been reaped; NONE: nothing is known of it; MOVED: the lease was extended meanwhile
local lock, ledger, running, due, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local verb, uuid, entry, slot, again, wait, suffix = ARGV[1], ARGV[2], ARGV[2] .. ' ' .. ARGV[3], ARGV[4], ARGV[6], tonumber(ARGV[7]), ARGV[8]
local delay = tonumber(ARGV[5])

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'run' .. slot, 'tick', 'pend', 'queued', 'stop', 'interrupted')
local mine, tick, pend, queued, stop, interrupted = h[1] == uuid, tonumber(h[2]) or 0, tonumber(h[3]) or 0, h[4], h[5], h[6] or ''
local at = string.find(interrupted, uuid, 1, true)         -- the newest few that were reaped, each followed by a blank

if verb == 'reap' then
  if tonumber(redis.call('ZSCORE', running, entry) or -1) ~= tonumber(ARGV[9]) then return {'MOVED', now, 0} end
elseif not mine then
  if verb == 'finish' then                                 -- the takeover is not needed any more
    if again ~= '' then redis.call('ZREM', due, again) end
  elseif at and verb ~= 'requeue' then                   -- recorded as interrupted, but its replica knows that it never started
    redis.call('ZADD', due, now + wait, again)
  end
  if at then
    redis.call('HSET', ledger, 'interrupted', string.sub(interrupted, 1, at - 1) .. string.sub(interrupted, at + #uuid + 1))
  end
  return {at and 'LATE' or 'NONE', now, 0}
end

-- First, since HDEL is not refused when Redis' memory is full, and after a first write nothing is: a run must be able to end.
if mine then
  redis.call('HDEL', ledger, 'r:' .. uuid, 'run' .. slot, 'pend', 'queued', 'stop')
else
  redis.call('HDEL', ledger, 'r:' .. uuid)
end

-- The entry, not the lock, is the authority: whoever removes it wakes what waited behind the run.
local freed = 0
if mine then
  if queued then
    redis.call('ZADD', due, now, queued .. suffix)
    freed = tonumber(queued)
  end
  if pend > tick then
    if verb == 'finish' or verb == 'requeue' then          -- a true overlap: settled
      redis.call('HSET', ledger, 'tick', pend, 'overlap', pend)
    else                                                   -- it was none: the run that was in the way never ran, or died
      redis.call('ZADD', due, now, pend .. suffix)
      redis.call('HSET', ledger, 'tick', pend)
      freed = pend
    end
  end
end
if again ~= '' and verb ~= 'finish' and not (verb == 'reap' and stop) then redis.call('ZADD', due, now + wait, again) end
if verb == 'reap' then redis.call('HSET', ledger, 'interrupted', string.sub(uuid .. ' ' .. interrupted, 1, 8 * (#uuid + 1))) end

redis.call('ZREM', running, entry)
if redis.call('GET', lock) == uuid then
  if delay > 0 then redis.call('PEXPIRE', lock, delay) else redis.call('DEL', lock) end
end
if #ARGV >= 10 then redis.pcall('XADD', runs, 'MAXLEN', '~', 10000, '*', unpack(ARGV, 10)) end -- history is not worth a failed finish
return {'OK', now, freed}
