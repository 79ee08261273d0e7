-- drop: take a member out of the due set without running it.
--
-- KEYS  1 ledger  2 due
-- ARGV  1 member  2 fate of its tick, to be counted as that: missed, or what a run of it ended with; '' = none
-- returns {OK, now, 1 if it was there, `gaps`: what nobody has counted yet}
local ledger, due, member, fate = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local h = redis.call('HMGET', ledger, 'gaps', 'handed', 'counted', 'from')
local gaps, tick, counted = h[1] or '', string.match(member, '^%d+'), h[3] or ''

local there = redis.call('ZREM', due, member)
if there == 1 and tick == h[2] then redis.call('HDEL', ledger, 'handed') end -- it waits no more
local from, known = string.gsub(h[4] or '', ' ' .. tick .. ':%d+', '')
local kind = string.match(member, '^%d+ %S+ (%l+)')
local byHand = kind == 'manual' or kind == 'backfill'     -- a run of the same tick may live, and be told its note again
if there == 1 and known > 0 and not byHand then redis.call('HSET', ledger, 'from', from) end
if there == 1 and string.find(counted, tick .. ' ', 1, true) then -- it had a fate before it became due again
  redis.call('HSET', ledger, 'counted', (string.gsub(counted, tick .. ' ', '')))
elseif there == 1 and fate ~= '' then
  gaps = gaps .. string.format('%d-%d%s ', tick - 1, tick + 1, fate == 'missed' and '' or ':' .. fate)
  redis.call('HSET', ledger, 'gaps', gaps)
end
return {'OK', now, there, gaps}
