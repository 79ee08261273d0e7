-- pause: hold a job back, or let it go on, once however often the request arrives.
--
-- A job may be held by two pauses, its own (`paused`) and that of all jobs (`pausedAll`). Neither replaces, lifts or ends the
-- other: the job goes on when neither holds it.
--
-- KEYS  1 ledger  2 memo of the request  3 acts of operators: if it is given, the last of ARGV is the act to be kept there
-- ARGV  1 channel of the nudges  2 job  3 pause | resume, of the job's own; pauseAll | resumeAll, of that of all jobs
--       4 until: after this Redis time this copy has no effect  5 the time by which ticks come, if not Redis' (ms; 0 = it is)
--       pause: 6 end (ms; 0 = until it is resumed)  7 reason: one line, may be empty; behind a line feed who pauses
-- returns {OK, now, 1, or 0 when there was no such pause}, {PAST, now} when the end has been reached, {UNKNOWN | STALE, now}
local ledger, memo, acts = KEYS[1], KEYS[2], KEYS[3]
local act = acts and table.remove(ARGV)
local verb = string.match(ARGV[3], '^%l+')
local own = verb == ARGV[3]
local field, other = own and 'paused' or 'pausedAll', own and 'pausedAll' or 'paused'

local h = redis.call('HMGET', ledger, 'born', field, other, 'tick', 'pausedTo', 'since', 'open', 'gaps')
local paused, besides, tick, pausedTo, since = h[2], h[3] or '', tonumber(h[4]) or 0, tonumber(h[5]) or 0, tonumber(h[6]) or 0
local open, gaps = h[7] or '', h[8] or ''

if not h[1] then redis.pcall('PUBLISH', ARGV[1], 'due') return {'UNKNOWN', now} end -- who lives registers it
-- A copy that comes late must not undo what was done after it.
local before = redis.call('GET', memo)
if before then return {'OK', now, tonumber(before)} end
if now > tonumber(ARGV[4]) then return {'STALE', now} end

local at = ARGV[5] ~= '0' and tonumber(ARGV[5]) or now
local ends, began = string.match(paused or '', '^(%d+) (%d+)')
ends, began = tonumber(ends or 0), tonumber(began or at)
-- finish ends the pause at an instant: the ticks up to then are settled, and refused to late askers. Those that came in
-- neither pause, and that nobody fired, are missed.
local function finish(over)
  local from = math.max(tick, since, pausedTo)
  for refused in string.gmatch(open, ' (%d+)~[<+]') do from = math.max(from, tonumber(refused)) end
  local pauses = {{began, over}}
  local otherEnds, otherBegan = string.match(besides, '^(%d+) (%d+)')
  if otherEnds then table.insert(pauses, {tonumber(otherBegan), otherEnds ~= '0' and otherEnds - 1 or over}) end
  table.sort(pauses, function(a, b) return a[1] < b[1] end)
  for _, pause in ipairs(pauses) do
    local to = math.min(pause[1], over)                    -- Redis' clock may have been wrong when it began
    if to - from > 1 then gaps = gaps .. string.format('%d-%d ', from, to) end
    local first, last = math.max(from, to - 1), math.min(pause[2], over)
    if last - first > 0 then gaps = gaps .. string.format('%d-%d:paused ', first, last + 1) end
    from = math.max(from, pause[2])
  end
  redis.call('HSET', ledger, 'tick', string.format('%d', math.max(tick, over)), 'pausedTo', string.format('%d', math.max(pausedTo, over)), 'gaps', gaps)
end

local answer = 1
if verb == 'pause' then
  local to = tonumber(ARGV[6])
  if to ~= 0 and to <= at then return {'PAST', now} end
  if ends ~= 0 and ends <= at then                        -- the one before ended by itself
    finish(ends - 1)
    began = at
  end
  redis.call('HSET', ledger, field, string.format('%d %d ', to, began) .. ARGV[7])
elseif paused then
  finish(ends ~= 0 and math.min(at, ends - 1) or at)       -- the tick at its end is none of them
  redis.call('HDEL', ledger, field)
else
  answer = 0
end
if answer == 1 then redis.pcall('PUBLISH', ARGV[1], 'due ' .. ARGV[2]) end -- what was kept back, or is now
redis.call('SET', memo, answer, 'PX', 86400000)
if act and answer == 1 then redis.pcall('XADD', acts, 'MAXLEN', '~', '1000', '*', 'act', act) end -- not worth a failed request
return {'OK', now, answer}
