-- release: delete locks after the safety delay, each compared with its owner first, and never under a live run.
--
-- KEYS  the locks; then as many ledgers    ARGV  uuids of the runs
-- returns how many are deleted
local n, deleted = #ARGV, 0
for i, lock in ipairs(redis.call('MGET', unpack(KEYS, 1, n))) do
  if lock == ARGV[i] and not redis.pcall('HGET', KEYS[n + i], 'r:' .. lock) then deleted = deleted + redis.call('DEL', KEYS[i]) end
end
return deleted
