-- drop: take a member out of the due set without running it.
--
-- KEYS  1 ledger  2 due
-- ARGV  1 member  2 fate of its tick, to be counted as that: missed, or what a run of it ended with; '' = none
-- returns {OK, now, 1 if it was there, `gaps`: what nobody has counted yet}
local ledger, due, member, fate = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local h = redis.call('HMGET', ledger, 'gaps', 'open')
local gaps, open = h[1] or '', h[2] or ''
local tick, kind = string.match(member, '^(%d+) %S+ (%l+)')

local there = redis.call('ZREM', due, member)
if there == 1 then
  local how = (kind == 'manual' or kind == 'backfill') and '%*' or '~'
  local at, to, counted = string.find(open, ' ' .. tick .. how .. ':%d*(!?)')
  if at then redis.call('HSET', ledger, 'open', string.sub(open, 1, at - 1) .. string.sub(open, to + 1)) end
  if fate ~= '' and counted ~= '!' then
    gaps = gaps .. string.format('%d-%d%s ', tick - 1, tick + 1, fate == 'missed' and '' or ':' .. fate)
    redis.call('HSET', ledger, 'gaps', gaps)
  end
end
return {'OK', now, there, gaps}
