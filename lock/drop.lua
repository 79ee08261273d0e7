-- drop: take a member out of the due set without running it.
--
-- KEYS  1 ledger  2 due
-- ARGV  1 member  2 '1': its tick was missed, and is to be counted as that
-- returns {OK, now, 1 if it was there, missed ticks that nobody has counted}
local ledger, due, member = KEYS[1], KEYS[2], ARGV[1]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'gaps', 'handed')
local gaps, tick = h[1] or '', string.match(member, '^%d+')

local there = redis.call('ZREM', due, member)
if there == 1 and tick == h[2] then redis.call('HDEL', ledger, 'handed') end -- it waits no more
if there == 1 and ARGV[2] == '1' then
  gaps = gaps .. string.format('%d-%d ', tick - 1, tick + 1)
  redis.call('HSET', ledger, 'gaps', gaps)
end
return {'OK', now, there, gaps}
