-- acquire: refuse, or take the lock and claim the tick, in one step.
--
-- KEYS  1 lock  2 ledger  3 running  4 due
-- ARGV  1 uuid of the run    2 job    3 tick    4 until: after this Redis time this copy has no effect    5 ttl
--       6 tolerance for early askers    7 policy: Forbid | Allow | Queue | Replace
--       8 record of the run for whoever takes it over; its last word is the replica
--       What follows may be left out:
--       9 slot: '' or, under Allow, ':<tick>'    10 due member to pop; '' = the tick comes from the table
--       11 tick of the ledger from which the list of ticks was made; '' = there is none    12.. that list: due members of
--       the ticks after it, this one last; with it nothing is run at once, so that they are run in order
-- Times are milliseconds, absolute ones on Redis' clock.
-- returns {code, now, newest tick claimed before, newest tick settled as overlap, end of the last pause,
--          replica that claimed last, WON: token; OVERLAP, HELD: lease end of the run that is in the way;
--          QUEUED: the tick that waited until now, and does not any more; PAUSED: the pause's end, 0 = until it is resumed}
--          OVERLAP: the newest tick claimed, or refused behind the run in the way, before
-- The record is kept as '<tick> <token> <newest tick claimed before> <ARGV 8>'.
local lock, ledger, running, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uuid, job, tick, policy = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[7]
local slot, member, older, listed = ARGV[9] or '', ARGV[10] or '', ARGV[11] or '', #ARGV > 11

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'born', 'tick', 'run' .. slot, 'paused', 'overlap', 'pausedTo', 'by', 'pend', 'queued', 'token', 'last')
local claimed, held, paused, pausedTo = tonumber(h[2]) or 0, h[3], h[4], tonumber(h[6]) or 0
local pend, queued, token, last = h[8] or '', h[9], tonumber(h[10]) or 0, h[11]

local function answer(code, more)
  return {code, now, claimed, tonumber(h[5]) or 0, pausedTo, h[7] or '', more or 0}
end
local function waiting(code) return answer(code, tonumber(redis.call('ZSCORE', running, held .. ' ' .. job) or 0)) end

if not h[1] then return answer('UNKNOWN') end              -- ledger new or lost: register first
-- First what most askers hear. A tick is claimed once, so this holds however late the copy comes.
if member == '' and tick <= claimed and held ~= uuid then return answer('FIRED') end
if now > tonumber(ARGV[4]) then return answer('STALE') end -- this copy comes too late

local ttl = tonumber(ARGV[5])
local leaseEnd = string.format('%d', now + ttl)
if held == uuid then                                       -- asked again: same answer, and the lease begins anew with this request
  local owner = redis.call('GET', lock)
  if owner and owner ~= uuid then return answer('LOST') end
  local itsToken, previous = string.match(redis.call('HGET', ledger, 'r:' .. uuid) or '', '^%S+ (%d+) (%d+)')
  claimed = tonumber(previous) or claimed
  redis.call('ZADD', running, leaseEnd, uuid .. ' ' .. job)
  redis.call('SET', lock, uuid, 'PX', ARGV[5])
  return answer('WON', tonumber(itsToken))
end

-- A pause settles the ticks before its end, and keeps back what is due; what somebody asked for by hand passes.
if paused then
  local ends = tonumber(string.match(paused, '^%d+') or 0) -- 0 = until it is resumed
  local asked = member ~= '' and string.match(member, '^%d+ %S+ (%S+)')
  local over = ends ~= 0 and math.max(asked and now or 0, tick) >= ends
  if asked ~= 'manual' and asked ~= 'backfill' and not over then return answer('PAUSED', ends) end
  pausedTo = math.max(pausedTo, math.min(ends - 1, now))
end

if member ~= '' then                                       -- authority: the due member, however old its tick
  if not redis.call('ZSCORE', due, member) then return answer('GONE') end
  if held then return waiting('HELD') end
else                                                       -- authority: the table, for ticks newer than the newest claimed
  if tick > now + tonumber(ARGV[6]) then return answer('EARLY') end
  if older ~= '' and tonumber(older) ~= claimed then return answer('GAP') end
  local waits = policy == 'Replace' or policy == 'Queue' and not queued
  if held and not waits then                               -- provisional: finish settles what is refused so, the rest hands it on
    if tick > now then return answer('EARLY') end          -- the run may be over by then
    for refused in string.gmatch(pend, '%d+') do claimed = math.max(claimed, tonumber(refused)) end
    local all, first, last = pend, 3, 3                    -- this tick, or the list that ends with it
    if listed then first, last = 12, #ARGV end
    for i = first, last do
      local refused = string.match(ARGV[i], '^%d+')
      if not string.find(all, refused, 1, true) then all = all .. ' ' .. refused end
    end
    if all ~= pend then redis.call('HSET', ledger, 'pend', string.sub(all, -1400)) end
    return waiting('OVERLAP')
  end
end

-- The last run leaves its lock behind for the safety delay, and that never costs a later tick. Any other owner is respected.
local owner = redis.call('GET', lock)
if owner and not held and owner ~= last then return answer('LOCKED') end

local replica = string.match(ARGV[8], '.* (%S+)$') -- without the blank it would try anew at each letter
if listed then                                             -- claimed now, all of them, and due in order
  redis.call('ZSCORE', due, member)                        -- should it be no sorted set, the script breaks off before it claims
  redis.call('HSET', ledger, 'tick', ARGV[3], 'by', replica)
  for i = 12, #ARGV do
    if tonumber(string.match(ARGV[i], '^%d+')) > pausedTo then redis.call('ZADD', due, now, ARGV[i]) end
  end
  redis.pcall('PUBLISH', string.gsub(due, 'due$', 'events'), 'due')
elseif held then                                           -- Queue and Replace: claimed now, set free by the end of the present run
  redis.call('HSET', ledger, 'tick', ARGV[3], 'queued', ARGV[3], 'by', replica)
end
if held and policy == 'Replace' then
  redis.call('HSET', ledger, 'stop', 1)
  redis.pcall('PUBLISH', string.gsub(due, 'due$', 'events'), 'stop ' .. job)
end
if held or listed then return answer('QUEUED', tonumber(not listed and queued or 0)) end

token = math.max(token + 1, now)                           -- never falls back, not even when the ledger was lost
local tokenText = string.format('%d', token)
redis.call('ZADD', running, leaseEnd, uuid .. ' ' .. job)  -- first: should the script break off, the takeover settles what is there
redis.call('HSET', ledger, 'run' .. slot, uuid, 'r:' .. uuid, ARGV[3] .. ' ' .. tokenText .. ' ' .. (h[2] or 0) .. ' ' .. ARGV[8],
  'token', tokenText, 'by', replica, 'last', uuid, 'tick', member == '' and ARGV[3] or h[2] or 0)
if owner then redis.call('DEL', lock) end
local set = redis.call('SET', lock, uuid, 'NX', 'EX', math.ceil(ttl / 1000))
if not set or redis.call('GET', lock) ~= uuid then return redis.error_reply('LOCKLOST the lock is not ours after SET NX') end
if member ~= '' then
  redis.call('ZREM', due, member)
elseif pend ~= '' then
  redis.call('HDEL', ledger, 'pend')
end
return answer('WON', token)
