-- acquire: refuse, or take the lock and claim the tick, in one step.
--
-- The one rule for policies: the policy that a tick is asked with decides what it does about live runs, and all live runs
-- of its job count, whatever policy they began under. Nothing of this before the tick comes due: EARLY.
--   Forbid   it is refused: an overlap, if the run in its way turns out to have lived when the tick came due
--   Queue    it waits for the end of all live runs; while one waits, or is due, the next is an overlap for good
--   Replace  it waits in the place of one that waited, which is missed, and all live runs are told to end
--   Allow    it starts beside them, under a lock of its own
--   Lease    it is refused, and nothing is kept of it: a lease has no ticks
--   Allow:n  like Allow, while fewer than n runs live. The next tick is an overlap for good, even if a run turns out to be dead
-- A due member stays due while a run lives: under Allow never, under Allow:n while n live. Runs of jobs with the guarantee every-replica have
-- no entry: they are in nobody's way, and nothing is in theirs. A run is settled by the guarantee of its own record.
--
-- KEYS  1 lock  2 ledger  3 running  4 due  5 channel of the nudges
-- ARGV  1 uuid of the run    2 job    3 tick    4 until: after this Redis time this copy has no effect    5 ttl
--       6 tolerance for early askers    7 policy    8 record of the run; its last word is the replica
--       What follows may be left out:
--       9 when the tick came due    10 newest tick up to which the asker knows that none was missed
--       11 the tick before this one, or before the first of the list, if that is newer than 10; 0 = it is not
--       12 slot: '' or, under Allow, ':<tick>'    13 due member to pop; '' = the tick comes from the table
--       14 'look': the asker has no slot free, and must not win
--       15 newest claimed tick that the asker goes by; '' = it does not say
--       16.. the list: a due member and when its tick came due, by turns, this tick last; with it nothing is run at
--       once, so that they are run in order
-- Times are milliseconds, absolute ones on Redis' clock.
-- returns {code, now, newest tick claimed before, newest tick settled as overlap (WON: newest tick that had succeeded before
--          the first run of this one; 0 = none older than it), end of the last pause,
--          replica that had claimed last, WON: token;
--          PAUSED: the end of the pause that ends last, 0 = until it is resumed; `gaps`: what became of ticks that nobody fired
--          and nobody has counted yet; when the ledger was born}
-- The record is kept as '<tick> <token> <newest tick claimed before> <when it was claimed> <ARGV 8>', for as long as the run lives.
-- `open` of the ledger has each tick that has no fate yet, as ' <tick><how it stands><more>:<newest success before its first run>':
--   '=<uuid>' this run of it lives    '~' it is due, '*' by hand    '~+<when it came due>' it waits behind a run, '~<..' it was refused
-- A '!' at the end says that its fate is counted already. A tick that was never run has no success before ':'.
local lock, ledger, running, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uuid, job, tick, ttl, policy = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5], ARGV[7]
local came, slot, member, older, listed = ARGV[9] or ARGV[3], ARGV[12] or '', ARGV[13] or '', ARGV[15] or '', #ARGV > 15
local kind = member ~= '' and string.match(member, '^%d+ %S+ (%l+)') -- without its key; false: the tick comes from the table
local byHand, timer = kind == 'manual' or kind == 'backfill', string.find(job, '^timer:')

local h = redis.call('HMGET', ledger, 'born', 'tick', 'open', 'r:' .. uuid, 'token', 'last', 'paused', 'pausedAll', 'pausedTo', 'gaps',
  'succeeded', 'overlap', 'by')
local claimed, open, mine, token, last = tonumber(h[2]) or 0, h[3] or '', h[4], h[5] or 0, h[6]
local pausedTo, gaps, since = tonumber(h[9]) or 0, h[10] or '', nil

local function answer(code, more)                          -- h[12] and h[13] are overlap and by
  if code == 'WON' then h[12], h[13] = tick - since > 0 and since or 0, '' end
  return {code, now, claimed, h[12] or 0, pausedTo, h[13] or '', more or 0, gaps, h[1] or 0}
end

if not h[1] then return answer('UNKNOWN') end              -- ledger new or lost: register first

-- First what most askers hear. A tick is claimed once, so this holds however late the copy comes.
local known = string.find(open, ' ' .. ARGV[3], 1, true) -- plain searches first: many runs may live
local stands = known and string.find(open, ' ' .. ARGV[3] .. '~', known, true)
if member == '' and not mine and tick <= claimed then return answer(stands and 'DUE' or 'FIRED') end
local newest, behind, asked, waiting, isDue = claimed, 0, 0 -- newest tick claimed or refused; how many stand behind a run, or are due by hand; the one that waits
if known then since = string.match(open, ' ' .. ARGV[3] .. '[=~*][^ :]*:(%d+)', known) end -- of which all runs of a tick are told
if string.find(open, '~', 1, true) or string.find(open, '*', 1, true) then
  for t, how in string.gmatch(open, ' (%d+)([~*][+<]?)') do
    if how == '~+' then waiting = t end
    if how == '*' then asked = asked + 1 elseif how == '~' then isDue = true else newest, behind = math.max(newest, tonumber(t)), behind + 1 end
  end
end
if member == '' and not mine and tick < newest and not stands then return answer('FIRED') end -- passed over, and missed
if now > tonumber(ARGV[4]) then return answer('STALE') end -- this copy comes too late

if mine then                                               -- asked again: same answer, and the lease begins anew with this request
  local owner = redis.call('GET', lock)
  if owner and owner ~= uuid then return answer('LOST') end
  token, claimed = string.match(mine, '^%S+ (%d+) (%d+)')
  since = since or 0
  redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job)
  redis.call('SET', lock, uuid, 'PX', ttl)
  return answer('WON', token)
end

-- A pause settles the ticks before its end, and keeps back what is due, except what was asked for by hand since it began. A job
-- may have two, its own and that of all jobs. Neither knows of the other: the job stands still while one of them holds it.
local unpaused, pauses = pausedTo, {}                      -- end of the pause before these; {when it began, its last instant} of each that is over
if h[7] or h[8] then
  local since = byHand and tonumber(redis.call('ZSCORE', due, member) or now) -- 0: at its tick; if it is gone, it is not kept back
  local kept = nil                                         -- until when a pause keeps this back; 0 = until it is resumed
  for _, note in ipairs({h[7] or '', h[8] or ''}) do
    local ends, began = string.match(note, '^(%d+) (%d+)')
    ends = tonumber(ends)                                  -- 0 = until it is resumed; nil = there is no such pause
    if ends and ends ~= 0 and math.max(kind and now or 0, tick) >= ends then
      table.insert(pauses, {math.min(tonumber(began), ends), math.min(ends - 1, now)})
    elseif ends and not (since and (since == 0 and tick or since) >= tonumber(began)) then
      kept = kept ~= 0 and ends ~= 0 and math.max(kept or 0, ends) or 0
    end
  end
  if kept then return answer(not kind and tonumber(came) > now and 'EARLY' or 'PAUSED', kept) end -- it may be resumed by then
  table.sort(pauses, function(a, b) return a[1] < b[1] end)
  for _, pause in ipairs(pauses) do pausedTo = math.max(pausedTo, pause[2]) end
end

-- Authority: the due member, however old its tick; or the table, for ticks newer than the newest claimed.
local live = policy ~= 'Allow' and string.find(open, '=', 1, true) -- a run is in the way
local limit = tonumber(live and string.match(policy, '^Allow:(%d+)$') or 0) -- 0 = none
if limit > 0 then live = select(2, string.gsub(open, '=', '')) >= limit end
if member ~= '' then
  if not redis.call('ZSCORE', due, member) then return answer('GONE') end
else
  if tick > now + ARGV[6] then return answer('EARLY') end
  if older ~= '' and tonumber(older) ~= claimed then return answer('GAP') end
end

if ARGV[14] == 'look' and not live then return answer('FREE') end

-- The last run leaves its lock behind for the safety delay, and that never costs a later tick. Any other owner is respected.
local owner = not live and redis.call('GET', lock)
if owner and owner ~= last then
  return answer(redis.call('HGET', ledger, 'r:' .. owner) and 'HELD' or 'LOCKED') -- HELD: under Allow, the same tick runs already
end
local replica = string.match(ARGV[8], '^.* (%S+)$')

if live or member == '' and (listed or behind > 0 or #pauses > 0 or (ARGV[11] or '0') ~= '0') then
  if member ~= '' or live and policy == 'Lease' then return answer('HELD') end
  if live and tonumber(came) > now then return answer('EARLY') end -- the run may be over when it comes due

  local function gap(from, to, fate)                       -- nobody fires what lies between
    if to - from > 1 then gaps = gaps .. string.format('%d-%d%s ', from, to, fate) end
  end
  local since = tonumber(redis.call('HGET', ledger, 'since') or 0)
  local from = math.max(newest, unpaused, since, tonumber(ARGV[10] or 0))
  for _, pause in ipairs(pauses) do                        -- before it, and between the two
    gap(from, pause[1], '')
    gap(math.max(from, pause[1] - 1), pause[2] + 1, ':paused')
    from = math.max(from, pause[2])
  end
  if tonumber(ARGV[11] or 0) > from then gap(from, listed and string.match(ARGV[16], '^%d+') or tick, '') end

  local function take(t) open = string.gsub(open, ' ' .. t .. '~[+<]%S*', '') end
  local full = not listed and live and (limit > 0 or policy == 'Queue' and (waiting or isDue and redis.call('ZCARD', due) > 0)) -- else the due set was lost
  local refused, freed, overlap = not full and policy == 'Forbid' and live, {}, h[12]
  for i = 16, math.max(#ARGV, 16), 2 do                    -- a refusal is provisional: settle tells whether it was an overlap
    local m, itCame = ARGV[i] or ARGV[3], ARGV[i + 1] or came
    local t = string.match(m, '^%d+')
    local stood = tonumber(t) <= newest and string.find(open, ' ' .. t .. '~[+<]')
    if not (refused and stood) then
      if stood then take(t) end
      if t == waiting and listed then waiting = nil end
      if not full and tonumber(t) > pausedTo and (tonumber(t) > newest or stood) then -- else it lies in a pause, or was passed over, and is settled
        open, behind = open .. ' ' .. t .. (refused and '~<' .. itCame or listed and '~' or '~+' .. itCame) .. ':', behind + 1
        if listed then table.insert(freed, m) end
      end
    end
  end
  if full then
    gap(tick - 1, tick + 1, ':overlapped')
    overlap = ARGV[3]
  elseif waiting and not refused and (live or listed) then
    take(waiting)
    if listed then                                         -- the first of them
      open = open .. ' ' .. waiting .. '~:'
      table.insert(freed, waiting .. ' ' .. job .. ' catchup 1 0 0 ' .. uuid)
    elseif tonumber(waiting) > since then
      gap(tonumber(waiting) - 1, tonumber(waiting) + 1, ':replaced')
    end
  end
  local first = refused and behind > 100 and string.match(open, '=([^:]*)')
  local began, itsTtl = string.match(first and redis.call('HGET', ledger, 'r:' .. first) or '', '^%d+ %d+ %d+ (%d+) %S+ (%d+)')
  local lived = began and redis.call('ZSCORE', running, first .. ' ' .. job) - itsTtl
  for _ = 101, refused and behind or 0 do                  -- a run was in the way of those that came due while it provably lived
    local oldest, itCame = string.match(open, ' (%d+)~<(%d+)')
    take(oldest)
    local overlaps = began and tonumber(began) <= tonumber(itCame) and tonumber(itCame) <= lived
    if overlaps then overlap = oldest end
    gap(tonumber(oldest) - 1, tonumber(oldest) + 1, overlaps and ':overlapped' or '')
  end

  if live or listed then
    redis.call('ZSCORE', due, member)                      -- should it be no sorted set, the script breaks off before it claims
    local said = (full or open ~= h[3]) and redis.pcall('HSET', ledger, 'open', open, 'gaps', gaps, 'tick', refused and h[2] or ARGV[3],
      'by', (refused or full) and h[13] or replica, overlap and 'overlap' or 'gaps', overlap or gaps)
    -- When Redis' memory is full this is refused, and the tick overlaps all the same. A Redis that is no master has no say.
    local failed = type(said) == 'table' and said.err
    if failed and not ((refused or full) and string.find(failed, 'OOM', 1, true)) then return said end
    if full or refused then
      h[12] = not failed and overlap or h[12]              -- maybe this tick
      return answer('OVERLAP')
    end
    for _, m in ipairs(freed) do redis.call('ZADD', due, now, m) end
    if listed then redis.pcall('PUBLISH', KEYS[5], 'due') end
    if live and policy == 'Replace' then
      for run in string.gmatch(open, '=([^:]*)') do
        if not redis.call('HGET', ledger, 'x:' .. run) then redis.call('HSET', ledger, 'x:' .. run, 'REPLACED') end -- a cancelled one is to end for good
      end
      redis.pcall('PUBLISH', KEYS[5], 'stop ' .. job)
    end
    return answer('QUEUED')                                -- claimed now, and due in order, or set free by the end of the last live run
  end
  take(ARGV[3])                                            -- refused to others, whose policy was another one
end

local mark = ''
if member ~= '' then                                       -- it is due no more
  local at, to, counted = string.find(open, ' ' .. ARGV[3] .. (byHand and '%*' or '~') .. ':%d*(!?)')
  if at then open, mark = string.sub(open, 1, at - 1) .. string.sub(open, to + 1), counted end
end
local began = string.format('%d', now)
token = token - now < 0 and began or string.format('%d', token + 1) -- never falls back, not even when the ledger was lost
redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job) -- first: should the script break off, the takeover settles what is there
local record = ARGV[3] .. ' ' .. token .. ' ' .. (h[2] or 0) .. ' ' .. began .. ' ' .. ARGV[8]
local moved = member == '' and ARGV[3] or h[2] or 0
since = since or h[11] or 0
if asked > 500 then open = string.gsub(open, ' %d+%*:%S*', '', 1) end -- of a backfill, any number may wait to be run again
open = open .. ' ' .. ARGV[3] .. '=' .. uuid .. ':' .. since .. mark
redis.call('HSET', ledger, 'r:' .. uuid, record, 'token', token, 'tick', moved, 'by', replica, slot == '' and 'last' or 'by', slot == '' and uuid or replica,
  timer and 'by' or 'open', timer and replica or open)     -- timers are in nobody's way
if gaps ~= (h[10] or '') then redis.call('HSET', ledger, 'gaps', gaps) end
if owner then redis.call('DEL', lock) end
local set = redis.call('SET', lock, uuid, 'NX', 'EX', math.ceil(ttl / 1000))
if not set or redis.call('GET', lock) ~= uuid then return redis.error_reply('LOCKLOST the lock is not ours after SET NX') end
if member == '' then                                        -- the others need not ask for it, and who is at rest looks again
  redis.pcall('PUBLISH', KEYS[5], 'run ' .. job .. ' ' .. ARGV[3] .. ' ' .. h[1] .. ' ' .. replica .. ' ' .. uuid .. ' ' .. now + ttl)
else
  redis.call('ZREM', due, member)
  if redis.call('ZCARD', running) == 1 then redis.pcall('PUBLISH', KEYS[5], 'run') end
end
return answer('WON', token)
