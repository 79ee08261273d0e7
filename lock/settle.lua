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
local lock, ledger, running, due, memo, timer = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6], KEYS[8]
local verb, uuid, job, entry, again, wait = ARGV[1], ARGV[2], ARGV[3], ARGV[6], ARGV[13] or '', ARGV[14] or 0
local member, r, x, day = uuid .. ' ' .. job, 'r:' .. uuid, 'x:' .. uuid, 86400000
local fate, failed = ARGV[8], ARGV[12] == 'failed'

local h = redis.call('HMGET', ledger, r, 'runs', 'behind', 'counted', 'ended', 'streak', 'fate:' .. fate, x, 'from', 'succeeded')
local record, live, behind, counted, cancelled = h[1], h[2] or '', h[3] or '', h[4] or '', h[8]
local kind = (cancelled or behind ~= '') and string.match(record or '', '^%d+ %d+ %d+ %d+ %S+ %d+ (%l+)')
local byHand = kind == 'manual' or kind == 'backfill'
local cut = cancelled and string.match(entry, '"outcome":"([%l_]+)"') -- its holder may not know that it is cancelled
if cut and string.find('shutdown interrupted lost_lock not_started replaced handed_over', cut, 1, true) then
  entry = string.gsub(string.gsub(entry, '"outcome":"[%l_]+"', '"outcome":"cancelled"', 1), ',"failed":true', '', 1)
  failed = false
  if fate ~= '' then fate, h[7] = 'cancelled', redis.call('HGET', ledger, 'fate:cancelled') end
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
local before, after = 0, 0                                 -- ticks in a row that failed
-- A tick of the table has one fate, which is counted once: by the step that ends its last run.
local function endTick(tick, text)
  local from, known = string.gsub(h[9] or '', ' ' .. tick .. ':%d+', '')
  if known > 0 then note('from', from) end
  if fate == '' then return end
  if fate == 'succeeded' and tick - (h[10] or 0) > 0 then note('succeeded', tick) end
  keep('tick', text)
  local once = ARGV[15] == '1'
  if once then                                             -- it keeps the fate that it had
  elseif string.find(counted, tick .. ' ', 1, true) then   -- before its replica said that it had never started
    note('counted', (string.gsub(counted, tick .. ' ', '')))
  else
    note('fate:' .. fate, (h[7] or 0) + 1)
  end
  if tick - (h[5] or 0) < 0 then return end -- a newer one tells how the job stands
  note('scheduled', text)
  before = h[6] or '0'
  after = before
  if fate == 'succeeded' then
    after = '0'
    note('lastSuccess', once and math.max(tick, redis.call('HGET', ledger, 'lastSuccess') or 0) or now) -- an old tick tells of its own time
  elseif failed then
    if not once and (tick ~= h[5] or before == '0') then after = before + 1 end -- a tick fails once, though it may end twice
    note('lastFailure', now)
    if before == '0' then note('failingSince', now) end
  else
    return
  end
  note('ended', tick)
  note('streak', after)
  note('endedBy', verb .. ' ' .. uuid .. ' ' .. before)
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
  local by, was = string.match(redis.call('HGET', ledger, 'endedBy') or '', '^(%l+ %S+) (%d+)$')
  if code ~= 'MOVED' and by == verb .. ' ' .. uuid then before, after = was, h[6] end -- the answer was lost
  if verb == 'finish' then                                 -- the takeover is not needed any more
    if again ~= '' and redis.call('ZREM', due, again) == 1 then
      if redis.call('HGET', ledger, 'handed') == string.match(again, '^%d+') then redis.call('HDEL', ledger, 'handed') end
      if timer then forget() end
      endTick(string.match(again, '^%d+'), entry)
      if n > 0 then redis.pcall('HSET', ledger, unpack(notes, 1, n)) end
    end
  elseif verb == 'requeue' then                            -- Redis lost its data, and the run its lock with them
    if again ~= '' and redis.call('HGET', ledger, 'born') ~= ARGV[10] and redis.call('SET', memo, 'requeued', 'NX', 'PX', day) then nudge = redis.call('ZADD', due, now + wait, again) end
  elseif code == 'LATE' and again ~= '' then               -- recorded as interrupted, but its replica knows that it never started
    nudge = redis.call('ZADD', due, now + wait, again)
    if kept ~= '' then
      redis.call('SET', timer, kept)
      weigh(#string.match(kept, '^%d+ %S+ [01] (.*)$'))
    end
    local tick, kind = string.match(again, '^(%d+) %S+ (%l+)')
    if kind ~= 'manual' and kind ~= 'backfill' and kind ~= 'timer' then redis.call('HSET', ledger, 'counted', counted .. tick .. ' ') end
  end
  if code == 'LATE' then redis.pcall('SET', memo, 'taken ' .. watcher, 'PX', day) end -- refused only where nothing was written
  if nudge then redis.pcall('PUBLISH', ARGV[5], 'due') end
  return {code, now, 0, '', before, after}
end

-- First, since HDEL is not refused when Redis' memory is full, and after a first write nothing is: a run must be able to end.
local at = string.find(live, uuid, 1, true)
if at then live = string.sub(live, 1, at - 1) .. string.sub(live, at + #uuid + 1) end
redis.call('HDEL', ledger, r, x, live == '' and 'runs' or x)
if at and live ~= '' then redis.call('HSET', ledger, 'runs', live) end
redis.call('ZREM', running, member)

-- The entry, not the lock, is the authority: whoever removes it sees to what came due behind the run.
local freed, overlapped, count, first, last = 0, '', 0     -- the last three are of the ticks that overlapped
if behind ~= '' then
  local began, ttl = string.match(record or '', '^%d+ %d+ %d+ (%d+) %S+ (%d+)')
  local ran = verb == 'finish' or verb == 'requeue'
  local lived = ran and now - (ARGV[11] or 0) or verb == 'reap' and tonumber(ARGV[9]) - (ttl or 0) or 0 -- until then it certainly lived
  local known = redis.call('HMGET', ledger, 'tick', 'overlap')
  local kept, newest, overlap = '', tonumber(known[1]) or 0, tonumber(known[2]) or 0
  local spared = byHand and string.match(behind, '.*%-(%d+)') -- a run by hand takes no tick away: the newest is fired after it
  for how, tick, came in string.gmatch(behind, '([-+])(%d+)@(%d+) ') do
    if how == '-' and tick ~= spared and began and tonumber(began) <= tonumber(came) and tonumber(came) <= lived then -- a true overlap: settled
      overlapped, overlap = overlapped .. tick .. ' ', math.max(overlap, tonumber(tick))
      count, first, last = count + 1, first or tick, tick
      newest = math.max(newest, tonumber(tick))
    elseif live ~= '' then
      kept = kept .. how .. tick .. '@' .. came .. ' '
    else                                                   -- it waited; or the run in its way never ran, was dead, or began later
      nudge = redis.call('ZADD', due, now, tick .. ' ' .. job .. ' catchup 1 0 0 ' .. uuid)
      freed = math.max(freed, tonumber(tick))
      newest = math.max(newest, freed)
    end
  end
  if kept == '' then redis.call('HDEL', ledger, 'behind') else redis.call('HSET', ledger, 'behind', kept) end
  redis.call('HSET', ledger, 'tick', newest, 'overlap', overlap)
  if count > 0 then
    keep('tick', string.format('{"first":%s,"tick":%s,"count":%d,"outcome":"overlapped","behind":"%s","ended":%d}', first, last, count, uuid, now))
    redis.call('HSET', ledger, 'fate:overlapped', (tonumber(redis.call('HGET', ledger, 'fate:overlapped')) or 0) + count)
  end
end
if freed > 0 then redis.call('HSET', ledger, 'handed', freed) end
local over, ending = verb == 'finish' or again == '', entry -- its tick has ended with this run, and so
kept, how = over and timer and forget() or '', 'taken '
if verb ~= 'finish' and (again ~= '' or verb == 'reap') then
  local known = redis.call('HMGET', ledger, 'stop', 'tick')
  local token = string.match(record or '', '^%d+ (%d+)')
  if cancelled then                                        -- it is over, whether it had started or not
    over = true
    if not cut and (verb == 'abandon' or verb == 'handover') and kind and not byHand and kind ~= 'timer' then
      fate, h[7] = 'cancelled', redis.call('HGET', ledger, 'fate:cancelled')
      ending = string.format('{"tick":%s,"run":"%s","outcome":"cancelled","ended":%d}', string.match(record, '^%d+'), uuid, now)
    end
  elseif verb ~= 'handover' and verb ~= 'abandon' and token and tonumber(token) <= (tonumber(known[1]) or 0) then
    over = true                                            -- it was replaced
  elseif again == '' then                                  -- what is handed on needs no evidence that it never started
    how = 'dead '
  else
    nudge = redis.call('ZADD', due, now + wait, again)
    if string.match(again, '^%d+') == known[2] then redis.call('HSET', ledger, 'handed', known[2]) end
  end
end

if verb == 'reap' then redis.call('SET', memo, how .. ARGV[10] .. ' ' .. kept, 'PX', day) end
if redis.call('GET', lock) == uuid then redis.call('PEXPIRE', lock, ARGV[4]) end -- 0 deletes it
if over and record then endTick(string.match(record, '^%d+'), ending) end
if entry ~= '' then
  if verb ~= 'handover' or over then note('done', entry) end -- a tick that is handed on has not ended
  if not (over and record and fate ~= '' and ending == entry) then keep('run', entry) end
end
if n > 0 then redis.pcall('HSET', ledger, unpack(notes, 1, n)) end
if nudge then redis.pcall('PUBLISH', ARGV[5], 'due') end
return {'OK', now, freed, overlapped, before, after, cut}
