-- release: delete locks after the safety delay, each compared with its owner first, and never under a live run.
--
-- KEYS  the locks; then as many ledgers    ARGV  uuids of the runs
-- returns how many are deleted
local n, free = #ARGV, {}
for i, lock in ipairs(redis.call('MGET', unpack(KEYS, 1, n))) do
  if lock == ARGV[i] and not redis.pcall('HGET', KEYS[n + i], 'r:' .. lock) then free[#free + 1] = KEYS[i] end
end
return #free > 0 and redis.call('DEL', unpack(free)) or 0
