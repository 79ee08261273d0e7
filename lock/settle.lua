-- settle: the ways in which a run leaves `running`.
--   finish    it ran to its end
--   requeue   it ran and was cut short, and is to be run again
--   handover  its replica could not even start it, and gives the tick to another, or, without a member, up
--   abandon   its replica gave up without a clear answer, and knows that it never started
--   reap      its replica is gone: a watcher saw the lease unchanged for a whole ttl
--
-- KEYS  1 lock  2 ledger  3 running  4 due  5 history of the job  6 memo of the run  7 its failures  8 entry of the timer (see
--       timer): given if the run is one's
-- ARGV  1 verb  2 uuid of the run  3 job  4 how long the lock outlives the run (ms; 0 = delete now)  5 channel of the nudges
--       6 history entry; '' = none (reap: the watcher saw no record of it)    7 how many entries the history keeps
--       8 fate of the run's tick, should the run be its last; '' = the tick is not of the table
--       What follows may be left out:
--       9 lease end that the watcher saw (reap)    10 the watcher (reap); when the ledger was born, as the run's claim saw it (requeue)
--       11 how long ago the run ended (ms; finish, requeue)    12 'failed': the history entry belongs into the failures too
--       13 due member that hands the tick on; '' = none (finish: the one a takeover may have added, to be taken back)
--       14 not before: delay of that member (ms)
--       15 '1': an operator has the tick run once more. It keeps its fate; a success ends a row of failures
-- returns {OK | LATE | NONE | MOVED, now, newest tick that was set free, ticks that were settled as overlaps, how many ticks in a
--          row had failed before, and with this one: both 0 if the run is not the last of the newest tick; `cut`: the outcome that
--          cancelled replaces, or false. The question that is repeated, by the same watcher if it is a reap, is told the
--          same but for `cut`; of the row, until a newer tick ends}
--   LATE: it had been reaped; NONE: nothing is known of it; MOVED: the lease was extended meanwhile
-- A timer whose run is not to be run again is forgotten: its entry becomes a mark under which it is not set again for a day. One
-- time of a schedule leaves none. The memo of a run that was reaped keeps the entry, since there may be evidence yet that it never
-- started. The memo of one that was 'taken' says no more than by which watcher: its tick is due again, or over.
-- `open` of the ledger has each tick that has no fate yet, as acquire says.
local lock, ledger, running, due, memo, timer = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6], KEYS[8]
local verb, uuid, job, entry, again, wait = ARGV[1], ARGV[2], ARGV[3], ARGV[6], ARGV[13] or '', ARGV[14] or 0
local member, r, x, day = uuid .. ' ' .. job, 'r:' .. uuid, 'x:' .. uuid, 86400000
local fate, failed = ARGV[8], ARGV[12] == 'failed'

local h = redis.call('HMGET', ledger, r, 'open', 'ended', 'fate:' .. fate, x, 'succeeded')
local record, open, cancelled = h[1], h[2] or '', h[5] == 'CANCELLED'
local ended, streak, since, was, by = string.match(h[3] or '', '^(%d+) (%d+) (%d+) (%d+) (.*)$') -- of the ticks that ended
local cut = cancelled and string.match(entry, '"outcome":"([%l_]+)"') -- its holder may not know that it is cancelled
if cut and string.find('shutdown interrupted lost_lock not_started replaced handed_over', cut, 1, true) then
  entry = string.gsub(string.gsub(entry, '"outcome":"[%l_]+"', '"outcome":"cancelled"', 1), ',"failed":true', '', 1)
  failed = false
  if fate ~= '' then fate = 'cancelled' end
else
  cut = false
end

local nudge, weigh, forget = false                         -- nudge: something is due, or will be: replicas at rest know of no run
if timer then
  function weigh(more) redis.call('HSET', ledger, 'bytes', string.format('%d', math.max((tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more, 0))) end -- of the sources of all timers
  function forget()
    local kept = redis.call('GET', timer) or ''
    local setAt, setBy, new, source = string.match(kept, '^(%d+) (%S+) ([01]) (.*)$')
    if not setAt then return '' end
    if redis.call('ZSCORE', due, setAt .. ' ' .. job .. ' timer 1 0 0 ' .. setBy) then return '' end -- set anew, after a loss of all data
    if string.find(job, '@', 1, true) then redis.call('DEL', timer) else redis.call('SET', timer, 'fired - ' .. setBy .. ' ' .. new, 'PX', day) end
    weigh(-#source)
    return kept
  end
end

local function keep(what, text)                            -- history is not worth a failed finish
  for i = 5, failed and text == entry and 7 or 5, 2 do     -- the history, and the failures
    local there = redis.pcall('XADD', KEYS[i], 'NOMKSTREAM', 'MAXLEN', '~', i == 5 and ARGV[7] or math.ceil(ARGV[7] / 4), '*', what, text)
    if not there and redis.pcall('XADD', KEYS[i], '*', what, text) then redis.pcall('PEXPIRE', KEYS[i], 90 * day) end -- maybe the job is gone, and nobody registers it
  end
end
-- Fields of the ledger, each followed by its value, for one HSET; with room for all, since Lua is slow in making room.
local notes, n = {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}, 0
local function note(field, value) notes[n + 1], notes[n + 2], n = field, value, n + 2 end
-- The entry that closes or moves now: that of the run, or of its repetition, which waits. Timers have none.
local tick, place = string.match(record or again, '^%d+'), nil
if again ~= '' and not timer then
  local kind = string.match(again, '^%d+ %S+ (%l+)')
  place = kind and ' ' .. tick .. ((kind == 'manual' or kind == 'backfill') and '*:' or '~:')
end
local at, to = string.find(open, record and ' ' .. tick .. '=' .. uuid .. ':' or place or member, 1, true)
local rest, others = '', open                              -- what follows in it; all the others
if at then
  local stop = string.find(open, ' ', to, true)
  rest, others = string.sub(open, to + 1, stop and stop - 1), string.sub(open, 1, at - 1) .. (stop and string.sub(open, stop) or '')
end
-- A tick of the table has one fate, which is counted once, by the step that closes it.
local function close(as, text, count)
  keep('tick', text)
  if count > 0 then note('fate:' .. as, (as == ARGV[8] and h[4] or redis.call('HGET', ledger, 'fate:' .. as) or 0) + count) end
end
local before, after = 0, 0                                 -- ticks in a row that failed
local function endTick(text)                               -- with the last of its runs
  if fate == '' then return end
  local once = ARGV[15] == '1'                             -- it keeps the fate that it had
  if fate == 'succeeded' and tick - (h[6] or 0) > 0 then note('succeeded', tick) end
  close(fate, text, (once or string.find(rest, '!', 1, true)) and 0 or 1)
  if tick - (ended or 0) < 0 then return end -- a newer one tells how the job stands
  note('scheduled', text)
  before = streak or '0'
  after = before
  if fate == 'succeeded' then
    after = '0'
    note('lastSuccess', once and math.max(tick, redis.call('HGET', ledger, 'lastSuccess') or 0) or now) -- an old tick tells of its own time
  elseif failed then
    if not once and (tick ~= ended or before == '0') then after = before + 1 end -- a tick fails once, though it may end twice
    note('lastFailure', now)
    if before == '0' then since = now end
  else
    return
  end
  note('ended', tick .. ' ' .. after .. ' ' .. (since or 0) .. ' ' .. before .. ' ' .. verb .. ' ' .. uuid)
end
local code, how, watcher, kept                             -- code: of what is over
if verb == 'reap' or not record then how, watcher, kept = string.match(redis.call('GET', memo) or '', '^(%l+) (%S+) ?(.*)$') end
if verb == 'reap' then
  local moved = tonumber(redis.call('ZSCORE', running, member) or -1) ~= tonumber(ARGV[9])
  if moved or record and entry == '' then code = watcher == ARGV[10] and 'OK' or 'MOVED' end -- a record that it did not see: a failover
elseif not record then
  code = how == 'dead' and 'LATE' or 'NONE'
end
if code then
  if code ~= 'MOVED' and by == verb .. ' ' .. uuid then before, after = was, streak end -- the answer was lost
  if verb == 'finish' then                                 -- the takeover is not needed any more
    if again ~= '' and redis.call('ZREM', due, again) == 1 then
      if at then note('open', others) end
      if timer then forget() end
      endTick(entry)
      if n > 0 then redis.pcall('HSET', ledger, unpack(notes, 1, n)) end
    end
  elseif verb == 'requeue' then                            -- Redis lost its data, and the run its lock with them
    if again ~= '' and redis.call('HGET', ledger, 'born') ~= ARGV[10] and redis.call('SET', memo, 'requeued', 'NX', 'PX', day) then
      nudge = redis.call('ZADD', due, now + wait, again)
      if place and nudge == 1 then redis.call('HSET', ledger, 'open', open .. place) end
    end
  elseif code == 'LATE' and again ~= '' then               -- recorded as interrupted, but its replica knows that it never started
    nudge = redis.call('ZADD', due, now + wait, again)
    if kept ~= '' then
      redis.call('SET', timer, kept)
      weigh(#string.match(kept, '^%d+ %S+ [01] (.*)$'))
    end
    if place and string.find(place, '~', 1, true) then redis.call('HSET', ledger, 'open', open .. place .. '!') end -- its fate is counted
  end
  if code == 'LATE' then redis.pcall('SET', memo, 'taken ' .. watcher, 'PX', day) end -- refused only where nothing was written
  if nudge then redis.pcall('PUBLISH', ARGV[5], 'due') end
  return {code, now, 0, '', before, after}
end

-- First, since HDEL is not refused when Redis' memory is full, and after a first write nothing is: a run must be able to end.
redis.call('HDEL', ledger, r, x, others == '' and 'open' or x)
if at and others ~= '' then redis.call('HSET', ledger, 'open', others) end
redis.call('ZREM', running, member)

-- The entry in `running`, not the lock, is the authority: whoever removes it sees to what came due behind the run.
local began, ttl, kind = string.match(record or '', '^%d+ %d+ %d+ (%d+) %S+ (%d+) (%l+)')
local byHand = kind == 'manual' or kind == 'backfill'
local freed, overlapped, count, first, last = 0, '', 0     -- the last three are of the ticks that overlapped
open = others
if string.find(open, '~', 1, true) then
  local ran = verb == 'finish' or verb == 'requeue'
  local lived = ran and now - (ARGV[11] or 0) or verb == 'reap' and tonumber(ARGV[9]) - (ttl or 0) or 0 -- until then it certainly lived
  local known = redis.call('HMGET', ledger, 'tick', 'overlap')
  local newest, overlap = tonumber(known[1]) or 0, tonumber(known[2]) or 0
  local runs = string.find(open, '=', 1, true)
  local spared = byHand and string.match(open, '^.* (%d+)~<') -- a run by hand takes no tick away: the newest is fired after it
  open = string.gsub(open, ' (%d+)~([<+])(%d+):', function(t, how, came)
    local overlaps = how == '<' and t ~= spared and began and tonumber(began) <= tonumber(came) and tonumber(came) <= lived
    if runs and not overlaps then return end
    newest = math.max(newest, tonumber(t))
    if not overlaps then                                   -- it waited; or the run in its way never ran, was dead, or began later
      nudge = redis.call('ZADD', due, now, t .. ' ' .. job .. ' catchup 1 0 0 ' .. uuid)
      freed = math.max(freed, tonumber(t))
      return ' ' .. t .. '~:'
    end
    overlapped, count, first, last, overlap = overlapped .. t .. ' ', count + 1, first or t, t, math.max(overlap, tonumber(t))
    return ''
  end)
  redis.call('HSET', ledger, 'tick', newest, 'overlap', overlap)
  if count > 0 then close('overlapped', string.format('{"first":%s,"tick":%s,"count":%d,"outcome":"overlapped","behind":"%s","ended":%d}', first, last, count, uuid, now), count) end
end
local over, ending = verb == 'finish' or again == '', entry -- its tick has ended with this run, and so
kept, how = over and timer and forget() or '', 'taken '
if verb ~= 'finish' and (again ~= '' or verb == 'reap') then
  if cancelled then                                        -- it is over, whether it had started or not
    over = true
    if not cut and (verb == 'abandon' or verb == 'handover') and kind and not byHand and kind ~= 'timer' then
      fate = 'cancelled'
      ending = string.format('{"tick":%s,"run":"%s","outcome":"cancelled","ended":%d}', tick, uuid, now)
    end
  elseif verb ~= 'handover' and verb ~= 'abandon' and h[5] == 'REPLACED' then
    over = true
  elseif again == '' then                                  -- what is handed on needs no evidence that it never started
    how = 'dead '
  else
    nudge = redis.call('ZADD', due, now + wait, again)
    if place then open = open .. place .. rest end
  end
end

if open ~= others then redis.call(open == '' and 'HDEL' or 'HSET', ledger, 'open', open) end
if verb == 'reap' then redis.call('SET', memo, how .. ARGV[10] .. ' ' .. kept, 'PX', day) end
if redis.call('GET', lock) == uuid then redis.call('PEXPIRE', lock, ARGV[4]) end -- 0 deletes it
if over and record then endTick(ending) end
if entry ~= '' then
  if verb ~= 'handover' or over then note('done', entry) end -- a tick that is handed on has not ended
  if not (over and record and fate ~= '' and ending == entry) then keep('run', entry) end
end
if n > 0 then redis.pcall('HSET', ledger, unpack(notes, 1, n)) end
if nudge then redis.pcall('PUBLISH', ARGV[5], 'due') end
return {'OK', now, freed, overlapped, before, after, cut}
