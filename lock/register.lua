-- register: make a job's ledger known, at load, at reload and after UNKNOWN; never at a claim.
--
-- KEYS  1 ledger  2 due  3 history of the job  4 its failures  5 the history that all jobs shared before 0.1.0
-- ARGV  1 fingerprint of schedule, zone, window, jitter, suspend; 'none' = no replica claims the job's ticks
--       2 until: after this Redis time this copy has no effect
--       What follows may be left out:    3 when the ledger was born that the caller knew before; 0 = it knew none
--       4 newest claimed tick that it knew of; 0 = it missed nothing
--       5 '1': at-least-once    6 channel of the nudges    7 newest tick that Redis had told it of as claimed; 4 may be a refused one
--       8 fingerprint that it had registered; 'none' = it was to register that, if it has not
--       9.. due members of the ticks since then: if Redis has lost its data, the script makes them due
-- returns {now, born, since, newest tick claimed, when the job came back after no replica had it; 0 = it never did}, or {now, STALE}
local ledger, due, fingerprint, knew, known = KEYS[1], KEYS[2], ARGV[1], ARGV[3] or '0', tonumber(ARGV[4] or 0)

if now > tonumber(ARGV[2]) then return {now, 'STALE'} end -- this copy comes too late
if string.find((redis.pcall('GET', KEYS[5]) or {}).err or '', 'WRONGTYPE', 1, true) then return redis.error_reply('OLDKEYS ' .. KEYS[5] .. ' is of a version before 0.1.0') end -- a stream
local h = redis.call('HMGET', ledger, 'born', 'schedule', 'since', 'tick', 'late', 'gaps', 'back', 'open')
local born, schedule, since, tick, late, gaps, back = h[1], h[2], h[3], h[4], tonumber(h[5]) or 0, h[6] or '', h[7] or 0

-- At-least-once goes on where the caller stands: it may fire again, and loses nothing.
local stands = ARGV[5] == '1' and (#ARGV > 8 and tonumber(string.match(ARGV[#ARGV], '^%d+')) or known > 0 and known)
if not born then -- a ledger is born with every earlier tick settled: after total loss no tick is fired again.
  since = ARGV[5] == '1' and (stands or now) or now + 1000 -- A claim may have been early by up to a second (its tolerance).
  born, tick = now, since
  redis.call('HSET', ledger, 'born', born, 'tick', tick, 'since', since, 'schedule', fingerprint)
elseif schedule == ARGV[8] and schedule ~= 'none' then -- it has kept the newest ticks of that: nothing begins anew
  redis.call('HSET', ledger, 'schedule', fingerprint)
elseif (schedule ~= fingerprint and ARGV[8] ~= fingerprint or ARGV[8] == 'none') and knew ~= born then -- a changed schedule has missed nothing before now
  since = now -- Nor has a job that is back. Single ticks that are uncounted stay: they need no schedule.
  gaps = string.gsub(gaps, '(%d+)%-(%d+)%S* ', function(from, to) return to - from > 2 and '' or nil end)
  if schedule == 'none' or ARGV[8] == 'none' then tick, back = math.max(tonumber(tick) or 0, now), schedule ~= fingerprint and now or back end
  redis.call('HSET', ledger, 'since', now, 'schedule', fingerprint, 'gaps', gaps, 'tick', tick, 'back', back)
end

-- Redis has lost the ledger that the caller knew. The first caller who did says what is missing since, for all of them.
if knew ~= '0' and known > 0 and tonumber(knew) ~= tonumber(born) and late == 0 then
  -- A replica that knew nothing made the ledger. A tick from before may come due later, by its jitter, and must still be
  -- fired. No tick is claimed yet, so the ledger goes back to the newest tick that is owed. If the caller
  -- owes none, the script counts here what it missed: a replica that knew nothing may claim next, and counts nothing.
  if stands and #ARGV > 8 and stands < tonumber(since) and since == born and tick == since then
    since, tick = stands, stands
    redis.call('HSET', ledger, 'tick', tick, 'since', since)
  end
  local function missed(from, to) if to - from > 1 then gaps = gaps .. string.format('%d-%d ', from, to) end end
  -- The new ledger itself tells of the ticks after its birth, whatever has changed since then.
  local since = math.min(tonumber(since), tonumber(born) + (ARGV[5] == '1' and 0 or 1000))
  local upTo, open = since + 1, h[8] or ''
  for i = #ARGV, 9, -1 do
    local owed = tonumber(string.match(ARGV[i], '^%d+'))
    if owed > known and owed <= since then
      redis.call('ZADD', due, now, ARGV[i])
      open = open .. string.format(' %d~:', owed)
      if upTo > since then missed(owed, upTo) end          -- newer ones that are settled
      upTo = owed
    end
  end
  missed(known, upTo)
  redis.call('HSET', ledger, 'late', string.format('%d', since), 'gaps', gaps, 'open', open)
  redis.pcall('PUBLISH', ARGV[6], 'due')
end
-- An older ledger has come back, which forgot claims. Or a caller under at-least-once made this one: amid a rollout,
-- others go on under at-most-once, and must not run again what was claimed before its birth. A claim of a later tick
-- was made by a clock that was ahead.
if ARGV[7] and (knew == born or tonumber(ARGV[7]) <= born + 1000) and ARGV[5] ~= '1' and tonumber(ARGV[7]) > tonumber(tick) then
  tick = ARGV[7]
  redis.call('HSET', ledger, 'tick', tick)
end
for _, key in ipairs({ledger, KEYS[3], KEYS[4]}) do redis.call('PEXPIRE', key, (fingerprint == 'none' and 7 or 90) * 86400000) end -- tables can come to name any number of jobs
return {now, tonumber(born), tonumber(since), tonumber(tick), tonumber(back)}
