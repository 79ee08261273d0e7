-- pause: hold a job back, or let it go on, once however often the request arrives.
--
-- KEYS  1 ledger
-- ARGV  1 id of the request: a uuid  2 channel of the nudges  3 pause | resume
--       pause: 4 end (ms; 0 = until it is resumed)  5 reason: one line, may be empty
-- returns {OK, now, 1, or 0 when there was no pause to end}, {PAST, now} when the end has been reached, or {UNKNOWN, now}
local ledger, id = KEYS[1], ARGV[1]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'born', 'paused', 'tick', 'pausedTo', 'asked')
local paused, tick, pausedTo, asked = h[2], tonumber(h[3]) or 0, tonumber(h[4]) or 0, h[5] or ''

if not h[1] then return {'UNKNOWN', now} end
-- A copy that comes late must not undo what was done after it.
local at = string.find(asked, id, 1, true)
if at then return {'OK', now, tonumber(string.match(asked, '%d+', at + #id))} end

local answer = 1
if ARGV[3] == 'pause' then
  local ends = tonumber(ARGV[4])
  if ends ~= 0 and ends <= now then return {'PAST', now} end
  redis.call('HSET', ledger, 'paused', string.format('%d %d ', ends, now) .. ARGV[5])
elseif paused then                                         -- its ticks are settled: not missed, and refused to late askers
  local ends = tonumber(string.match(paused, '^%d+') or 0)
  local over = ends == 0 and now or math.min(now, ends - 1) -- the tick at its end is none of them
  redis.call('HSET', ledger, 'tick', string.format('%d', math.max(tick, over)), 'pausedTo', string.format('%d', math.max(pausedTo, over)))
  redis.call('HDEL', ledger, 'paused')
  redis.pcall('PUBLISH', ARGV[2], 'due ' .. string.match(ledger, ':job:(.*)$')) -- what was kept back
else
  answer = 0
end
redis.call('HSET', ledger, 'asked', string.sub(string.format('%s %013d ', id, answer) .. asked, 1, 8 * (#id + 15)))
return {'OK', now, answer}
