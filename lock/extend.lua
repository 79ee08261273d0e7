-- extend: a run's lease, compared with its owner first.
--
-- KEYS  1 lock  2 ledger  3 running
-- ARGV  1 uuid of the run  2 job  3 ttl (ms)
-- returns {OK | LOST | REPLACED | CANCELLED, now}
local lock, ledger, running = KEYS[1], KEYS[2], KEYS[3]
local uuid, job, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])

local h = redis.call('HMGET', ledger, 'r:' .. uuid, 'stop', 'x:' .. uuid)
local record, stop, cancelled = h[1], tonumber(h[2]) or 0, h[3]
local owner = redis.call('GET', lock)

if not record or owner and owner ~= uuid then return {'LOST', now} end
-- PEXPIRE first: Redis refuses it not even when its memory is full, and after a first write it refuses nothing.
if owner then redis.call('PEXPIRE', lock, ttl)
else redis.call('SET', lock, uuid, 'PX', ttl) end -- gone, Redis' clock having jumped; while the run is ours nobody can have claimed
redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job)
if cancelled then return {'CANCELLED', now} end
return {tonumber(string.match(record, '^%d+ (%d+)')) <= stop and 'REPLACED' or 'OK', now}
