-- extend: a run's lease, compared with its owner first.
--
-- KEYS  1 lock  2 ledger  3 running
-- ARGV  1 uuid of the run  2 job  3 ttl (ms)  4 slot: '' or, under Allow, ':<tick>'
-- returns {OK | LOST | REPLACED, now}
local lock, ledger, running = KEYS[1], KEYS[2], KEYS[3]
local uuid, job, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'run' .. ARGV[4], 'stop')
local owner = redis.call('GET', lock)

if h[1] ~= uuid or owner and owner ~= uuid then return {'LOST', now} end
-- PEXPIRE first: Redis refuses it not even when its memory is full, and after a first write it refuses nothing.
if owner then redis.call('PEXPIRE', lock, ttl)
else redis.call('SET', lock, uuid, 'PX', ttl) end -- gone, Redis' clock having jumped; while the run is ours nobody can have claimed
redis.call('ZADD', running, 'XX', now + ttl, uuid .. ' ' .. job)
return {h[2] and 'REPLACED' or 'OK', now}                    -- a run that is to end keeps its lease until it has
