-- acquire: refuse, or take the lock and claim the tick, in one step.
--
-- KEYS  1 lock  2 ledger  3 running  4 due
-- ARGV  1 uuid of the run    2 job    3 tick    4 until: after this Redis time this copy has no effect    5 ttl
--       6 tolerance for early askers    7 policy: Forbid | Allow | Queue | Replace
--       8 slot: '' or, under Allow, ':<tick>'    9 record of the run for whoever takes it over    10 replica
--       11 due member to pop; '' = the tick comes from the table
--       12 tick of the ledger from which the list of older ticks was made; '' = there is none    13.. that list: due members
-- Times are milliseconds, absolute ones on Redis' clock.
-- returns {code, now, newest tick claimed before, token, newest tick settled as overlap, end of the last pause,
--          replica that claimed last, lease end of the run that OVERLAP and HELD have to wait for}
-- The record is kept as '<tick> <token> <newest tick claimed before> <ARGV 9>'.
local lock, ledger, running, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uuid, job, tick, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local policy, slot, member, older = ARGV[7], ARGV[8], ARGV[11], ARGV[12]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'born', 'tick', 'run' .. slot, 'pend', 'queued', 'paused', 'token', 'overlap', 'pausedTo', 'by', 'last')
local born, claimed, held, pend, queued, paused = h[1], tonumber(h[2]) or 0, h[3], tonumber(h[4]) or 0, h[5], h[6]
local token, last = tonumber(h[7]) or 0, h[11]

local function answer(code)
  local waits = held and (code == 'OVERLAP' or code == 'HELD')
  local lease = waits and redis.call('ZSCORE', running, held .. ' ' .. job)
  return {code, now, claimed, token, tonumber(h[8]) or 0, tonumber(h[9]) or 0, h[10] or '', tonumber(lease) or 0}
end

if not born then return answer('UNKNOWN') end              -- ledger new or lost: register first
if now > tonumber(ARGV[4]) then return answer('STALE') end -- this copy comes too late

if held == uuid then                                       -- asked again: same answer, and the lease begins anew with this request
  local owner = redis.call('GET', lock)
  if owner and owner ~= uuid then return answer('LOST') end
  local itsToken, itsPrevious = string.match(redis.call('HGET', ledger, 'r:' .. uuid) or '', '^%S+ (%d+) (%d+)')
  token, claimed = tonumber(itsToken) or token, tonumber(itsPrevious) or claimed
  redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job)
  redis.call('SET', lock, uuid, 'PX', ttl)
  return answer('WON')
end

if member ~= '' then                                       -- authority: the due member, however old its tick
  if not redis.call('ZSCORE', due, member) then return answer('GONE') end
  if held then return answer('HELD') end
else                                                       -- authority: the table, for ticks newer than the newest claimed
  if paused then return answer('PAUSED') end
  if tick > now + tonumber(ARGV[6]) then return answer('EARLY') end
  if tick <= claimed then return answer('FIRED') end
  if older ~= '' and tonumber(older) ~= claimed then return answer('GAP') end
  local waits = policy == 'Replace' or policy == 'Queue' and not queued
  if held and not waits then                               -- provisional: finish settles it, handover and takeover hand it on
    if tick > now then return answer('EARLY') end          -- the run may be over by then
    if tick > pend then redis.call('HSET', ledger, 'pend', tick) end
    return answer('OVERLAP')
  end
end

-- The last run leaves its lock behind for the safety delay, and that never costs a later tick. Any other owner is respected.
local owner = redis.call('GET', lock)
if owner and not held and owner ~= last then return answer('LOCKED') end

for i = 13, #ARGV do redis.call('ZADD', due, now, ARGV[i]) end
if held then                                               -- Queue and Replace: claimed now, set free by the end of the present run
  redis.call('HSET', ledger, 'tick', tick, 'queued', tick, 'by', ARGV[10])
  if policy == 'Replace' then redis.call('HSET', ledger, 'stop', 1) end
  return answer('QUEUED')
end

token = math.max(token + 1, now)                           -- never falls back, not even when the ledger was lost
redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job) -- first: should the script break off, the takeover settles what is there
redis.call('HSET', ledger, 'run' .. slot, uuid, 'r:' .. uuid, tick .. ' ' .. token .. ' ' .. claimed .. ' ' .. ARGV[9],
  'token', token, 'by', ARGV[10], 'last', uuid, 'tick', member == '' and tick or claimed)
if owner then redis.call('DEL', lock) end
local set = redis.call('SET', lock, uuid, 'NX', 'EX', math.ceil(ttl / 1000))
if not set or redis.call('GET', lock) ~= uuid then return redis.error_reply('LOCKLOST the lock is not ours after SET NX') end
if member ~= '' then
  redis.call('ZREM', due, member)
elseif pend > 0 and pend <= tick then
  redis.call('HDEL', ledger, 'pend')
end
return answer('WON')
