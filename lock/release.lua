-- release: delete the lock after the safety delay, compared with its owner first, and never under a live run.
--
-- KEYS  1 lock  2 ledger
-- ARGV  1 uuid of the run
-- returns 1 if deleted, else 0
local lock, ledger, uuid = KEYS[1], KEYS[2], ARGV[1]

if redis.call('GET', lock) ~= uuid or redis.call('HGET', ledger, 'r:' .. uuid) then return 0 end
return redis.call('DEL', lock)
