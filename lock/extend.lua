-- extend: a run's lease, compared with its owner first.
--
-- KEYS  1 lock  2 ledger  3 running
-- ARGV  1 uuid of the run  2 job  3 ttl (ms)
-- returns {OK | LOST | REPLACED | CANCELLED, now}
local lock, ledger, running = KEYS[1], KEYS[2], KEYS[3]
local uuid, job, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])

local h = redis.call('HMGET', ledger, 'r:' .. uuid, 'x:' .. uuid)
local owner = redis.call('GET', lock)

if not h[1] or owner and owner ~= uuid then return {'LOST', now} end
-- PEXPIRE first: Redis refuses it not even when its memory is full, and after a first write it refuses nothing.
if owner then redis.call('PEXPIRE', lock, ttl)
else redis.call('SET', lock, uuid, 'PX', ttl) end -- gone, Redis' clock having jumped; while the run is ours nobody can have claimed
redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job)
return {h[2] or 'OK', now}
