-- register: make a job's ledger known, at load, at reload and after UNKNOWN; never at a claim.
--
-- KEYS  1 ledger
-- ARGV  1 fingerprint of schedule, zone, window, jitter, suspend  2 retention of an unused ledger (ms)
-- returns {now, born, since, newest tick claimed, pause note or ''}
local ledger, fingerprint = KEYS[1], ARGV[1]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'born', 'schedule', 'since', 'tick', 'paused')
local born, schedule, since, tick, paused = h[1], h[2], h[3], h[4], h[5]

if not born then -- a ledger is born with every earlier tick settled: after total loss no tick is fired again.
  born, since, tick, paused = now, now, now + 1000, false -- A claim may have been early by up to a second (its tolerance).
  redis.call('HSET', ledger, 'born', born, 'tick', tick, 'since', since, 'schedule', fingerprint)
elseif schedule ~= fingerprint then -- a changed schedule has missed nothing before now
  since = now
  redis.call('HSET', ledger, 'since', now, 'schedule', fingerprint)
end
redis.call('PEXPIRE', ledger, ARGV[2])
return {now, tonumber(born), tonumber(since), tonumber(tick), paused or ''}
