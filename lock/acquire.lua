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
local lock, ledger, running, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uuid, job, tick, ttl, policy = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5], ARGV[7]
local came, slot, member, older, listed = ARGV[9] or ARGV[3], ARGV[12] or '', ARGV[13] or '', ARGV[15] or '', #ARGV > 15

local h = redis.call('HMGET', ledger, 'born', 'tick', 'runs', 'r:' .. uuid, 'behind', 'token', 'last', 'paused', 'pausedAll', 'pausedTo', 'gaps',
  'succeeded', 'from', 'overlap', 'by', 'handed')
local claimed, runs, mine, behind = tonumber(h[2]) or 0, h[3] or '', h[4], h[5] or ''
local token, last, pausedTo, gaps, from = h[6] or 0, h[7], tonumber(h[10]) or 0, h[11] or '', h[13] or ''

local function answer(code, more, since)                   -- h[14] to h[16] are overlap, by and handed
  if code == 'FIRED' and h[16] == ARGV[3] then code = 'DUE' end
  if code == 'WON' then h[14], h[15] = tick - since > 0 and since or 0, '' end
  return {code, now, claimed, h[14] or 0, pausedTo, h[15] or '', more or 0, gaps, h[1] or 0}
end

if not h[1] then return answer('UNKNOWN') end              -- ledger new or lost: register first

-- First what most askers hear. A tick is claimed once, so this holds however late the copy comes.
local newest, stands, waiting = claimed, nil, nil          -- newest tick claimed or refused; how this one stands behind a run; the one that waits
if behind ~= '' then
  for how, refused in string.gmatch(behind, '([-+])(%d+)') do
    newest = math.max(newest, tonumber(refused))
    if tonumber(refused) == tick then stands = how end
    if how == '+' then waiting = refused end
  end
end
if member == '' and not mine then
  if tick <= claimed then return answer(stands and 'DUE' or 'FIRED') end
  if tick < newest and not stands then return answer('FIRED') end -- passed over, and missed
end
if now > tonumber(ARGV[4]) then return answer('STALE') end -- this copy comes too late

local since = string.match(from, ' ' .. ARGV[3] .. ':(%d+)') -- newest success before the first run of this tick
if mine then                                               -- asked again: same answer, and the lease begins anew with this request
  local owner = redis.call('GET', lock)
  if owner and owner ~= uuid then return answer('LOST') end
  token, claimed = string.match(mine, '^%S+ (%d+) (%d+)')
  redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job)
  redis.call('SET', lock, uuid, 'PX', ttl)
  return answer('WON', token, since or 0)
end

-- A pause settles the ticks before its end, and keeps back what is due, except what was asked for by hand since it began. A job
-- may have two, its own and that of all jobs. Neither knows of the other: the job stands still while one of them holds it.
local unpaused, pauses = pausedTo, {}                      -- end of the pause before these; {when it began, its last instant} of each that is over
if h[8] or h[9] then
  local asked = member ~= '' and string.match(member, '^%d+ %S+ (%l+)') -- without its key
  local since = (asked == 'manual' or asked == 'backfill') and tonumber(redis.call('ZSCORE', due, member) or now) -- 0: at its tick; if it is gone, it is not kept back
  local kept = nil                                         -- until when a pause keeps this back; 0 = until it is resumed
  for _, note in ipairs({h[8] or '', h[9] or ''}) do
    local ends, began = string.match(note, '^(%d+) (%d+)')
    ends = tonumber(ends)                                  -- 0 = until it is resumed; nil = there is no such pause
    if ends and ends ~= 0 and math.max(asked and now or 0, tick) >= ends then
      table.insert(pauses, {math.min(tonumber(began), ends), math.min(ends - 1, now)})
    elseif ends and not (since and (since == 0 and tick or since) >= tonumber(began)) then
      kept = kept ~= 0 and ends ~= 0 and math.max(kept or 0, ends) or 0
    end
  end
  if kept then return answer(not asked and tonumber(came) > now and 'EARLY' or 'PAUSED', kept) end -- it may be resumed by then
  table.sort(pauses, function(a, b) return a[1] < b[1] end)
  for _, pause in ipairs(pauses) do pausedTo = math.max(pausedTo, pause[2]) end
end

-- Authority: the due member, however old its tick; or the table, for ticks newer than the newest claimed.
local live = runs ~= '' and policy ~= 'Allow'              -- a run is in the way
local limit = tonumber(live and string.match(policy, '^Allow:(%d+)$') or 0) -- 0 = none
if limit > 0 then live = select(2, string.gsub(runs, ' ', '')) >= limit end
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
local replica = string.match(ARGV[8], '.* (%S+)$') -- without the blank it would try anew at each letter

local written = gaps
if live or member == '' and (listed or behind ~= '' or #pauses > 0 or (ARGV[11] or '0') ~= '0') then
  if member ~= '' or live and policy == 'Lease' then return answer('HELD') end
  if live and tonumber(came) > now then return answer('EARLY') end -- the run may be over when it comes due

  -- The ticks that nobody fires go to `gaps` with their fate, and what is claimed here leaves `behind`.
  local function gap(from, to, fate)
    if to - from > 1 then gaps = gaps .. string.format('%d-%d%s ', from, to, fate) end
  end
  local function passOver()
    local upTo = listed and string.match(ARGV[16], '^%d+') or tick
    local from = math.max(newest, unpaused, tonumber(redis.call('HGET', ledger, 'since') or 0), tonumber(ARGV[10] or 0))
    for _, pause in ipairs(pauses) do                      -- before it, and between the two
      gap(from, pause[1], '')
      gap(math.max(from, pause[1] - 1), pause[2] + 1, ':paused')
      from = math.max(from, pause[2])
    end
    if tonumber(ARGV[11] or 0) > from then gap(from, upTo, '') end
  end
  local function take(claimedTick) behind = string.gsub(behind, '[-+]' .. claimedTick .. '@%d+ ', '') end
  local function keep()
    if behind == '' then redis.call('HDEL', ledger, 'behind') else redis.call('HSET', ledger, 'behind', behind) end
  end
  local function open(listedTick)                          -- else it lies in a pause, or was passed over, and is settled
    return tonumber(listedTick) > pausedTo and (tonumber(listedTick) > newest or string.find(h[5] or '', listedTick .. '@', 1, true))
  end

  local queues = policy == 'Queue' and live and not listed
  local full = queues and waiting or limit > 0 and live and not listed
  if queues and not waiting then                           -- what has waited, or was given back, may be due and not have begun
    for _, m in ipairs(redis.call('ZRANGE', due, 0, 4999)) do
      local whose, asked = string.match(string.find(m, job, 1, true) and m or '', '^%d+ (%S+) (%l+)')
      if whose == job and asked ~= 'manual' and asked ~= 'backfill' then full = true end
    end
  end
  if full or policy == 'Forbid' and live then
    local before, said = behind, nil
    if full then
      if not stands then passOver() end
      take(ARGV[3])
      gap(tick - 1, tick + 1, ':overlapped')
      said = redis.pcall('HSET', ledger, 'tick', ARGV[3], 'overlap', ARGV[3], 'gaps', gaps)
      if type(said) == 'number' then keep() end
    else                                                   -- provisional: settle tells whether it was one
      for i = 16, math.max(#ARGV, 16), 2 do
        local refused, itCame = string.match(ARGV[i] or ARGV[3], '^%d+'), ARGV[i + 1] or came
        if open(refused) and not string.find(behind, refused .. '@', 1, true) then
          behind = behind .. '-' .. refused .. '@' .. itCame .. ' '
        end
      end
      if behind ~= before then passOver() end
      local _, entries = string.gsub(behind, '@', '')
      local first = entries > 100 and string.match(runs, '^%S+')
      local began, itsTtl = string.match(first and redis.call('HGET', ledger, 'r:' .. first) or '', '^%d+ %d+ %d+ (%d+) %S+ (%d+)')
      local lived = began and redis.call('ZSCORE', running, first .. ' ' .. job) - itsTtl
      while entries > 100 and string.find(behind, '^%-') do -- a run was in the way of those that came due while it provably lived
        local oldest, itCame = string.match(behind, '(%d+)@(%d+)')
        take(oldest)
        local overlaps = began and tonumber(began) <= tonumber(itCame) and tonumber(itCame) <= lived
        if overlaps then redis.pcall('HSET', ledger, 'overlap', oldest) end
        gap(tonumber(oldest) - 1, tonumber(oldest) + 1, overlaps and ':overlapped' or '')
        entries = entries - 1
      end
      if behind ~= before then said = redis.pcall('HSET', ledger, 'behind', behind, 'gaps', gaps) end
    end
    -- When Redis' memory is full this is refused, and the tick overlaps all the same. A Redis that is no master has no say.
    if type(said) == 'table' and said.err and not string.find(said.err, 'OOM', 1, true) then return said end
    h[14] = redis.call('HGET', ledger, 'overlap')          -- maybe this tick
    return answer('OVERLAP')
  end

  passOver()
  if listed then                                           -- claimed now, all of them, and due in order
    redis.call('ZSCORE', due, member)                      -- should it be no sorted set, the script breaks off before it claims
    for i = 16, #ARGV, 2 do take(string.match(ARGV[i], '^%d+')) end
    if waiting then take(waiting) end
    redis.call('HSET', ledger, 'tick', ARGV[3], 'by', replica, 'gaps', gaps, 'handed', ARGV[3])
    if behind ~= (h[5] or '') then keep() end
    for i = 16, #ARGV, 2 do
      if open(string.match(ARGV[i], '^%d+')) then redis.call('ZADD', due, now, ARGV[i]) end
    end
    if waiting then redis.call('ZADD', due, now, waiting .. ' ' .. job .. ' catchup 1 0 0 ' .. uuid) end -- the first of them
    redis.pcall('PUBLISH', KEYS[5], 'due')
  elseif live then                                         -- Queue and Replace: claimed now, set free by the end of the last live run
    take(ARGV[3])
    if waiting then
      take(waiting)
      if tonumber(waiting) > tonumber(redis.call('HGET', ledger, 'since') or 0) then gap(tonumber(waiting) - 1, tonumber(waiting) + 1, ':replaced') end
    end
    redis.call('HSET', ledger, 'tick', ARGV[3], 'behind', behind .. '+' .. ARGV[3] .. '@' .. came .. ' ', 'by', replica, 'gaps', gaps)
  elseif stands then                                       -- refused to others, whose policy was another one
    take(ARGV[3])
    keep()
  end
  if live and policy == 'Replace' then
    redis.call('HSET', ledger, 'stop', token)
    redis.pcall('PUBLISH', KEYS[5], 'stop ' .. job)
  end
  if live or listed then return answer('QUEUED') end
end

local began = string.format('%d', now)
token = token - now < 0 and began or string.format('%d', token + 1) -- never falls back, not even when the ledger was lost
redis.call('ZADD', running, now + ttl, uuid .. ' ' .. job) -- first: should the script break off, the takeover settles what is there
local record = ARGV[3] .. ' ' .. token .. ' ' .. (h[2] or 0) .. ' ' .. began .. ' ' .. ARGV[8]
local moved = member == '' and ARGV[3] or h[2] or 0
-- The first claim of a tick notes the newest success, and all later runs of the tick are told the same one. settle forgets the
-- note when the tick ends. A due member may vanish without a settlement, so the notes have a bound.
if not since then since, from = h[12] or 0, from .. ' ' .. ARGV[3] .. ':' .. (h[12] or 0) end
if #from > 5000 then from = string.sub(from, (string.find(from, ' ', 2, true))) end
if slot == '' then
  redis.call('HSET', ledger, 'r:' .. uuid, record, 'token', token, 'by', replica, 'tick', moved, 'from', from, 'runs', runs .. uuid .. ' ', 'last', uuid)
else
  redis.call('HSET', ledger, 'r:' .. uuid, record, 'token', token, 'by', replica, 'tick', moved)
  if not string.find(job, '^timer:') then redis.call('HSET', ledger, 'from', from, 'runs', runs .. uuid .. ' ') end -- timers are in nobody's way
end
if gaps ~= written then redis.call('HSET', ledger, 'gaps', gaps) end
if owner then redis.call('DEL', lock) end
local set = redis.call('SET', lock, uuid, 'NX', 'EX', math.ceil(ttl / 1000))
if not set or redis.call('GET', lock) ~= uuid then return redis.error_reply('LOCKLOST the lock is not ours after SET NX') end
if member == '' then                                        -- the others need not ask for it, and who is at rest looks again
  redis.pcall('PUBLISH', KEYS[5], 'run ' .. job .. ' ' .. ARGV[3] .. ' ' .. h[1] .. ' ' .. replica .. ' ' .. uuid .. ' ' .. now + ttl)
else
  redis.call('ZREM', due, member)
  if h[16] == ARGV[3] then redis.call('HDEL', ledger, 'handed') end
  if redis.call('ZCARD', running) == 1 then redis.pcall('PUBLISH', KEYS[5], 'run') end
end
return answer('WON', token, since)
