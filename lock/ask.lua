-- ask: make ticks of a job due because somebody asked for them, once however often the request arrives.
--
-- KEYS  1 ledger  2 due
-- ARGV  1 id of the request: a uuid  2 what follows the tick in a due member  3 channel of the nudges
--       4.. the ticks (ms), in order; none: one tick that no schedule has and that nobody asked for before
-- returns {OK, now, the tick that was made, or how many members were added} or {UNKNOWN, now}
-- The ledger's tick is not moved: what is asked for by hand takes no tick away from the table.
local ledger, due, id = KEYS[1], KEYS[2], ARGV[1]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'born', 'manual', 'asked')
local asked = h[3] or ''                                   -- the newest few requests, each with its answer

if not h[1] then return {'UNKNOWN', now} end
local at = string.find(asked, id, 1, true)
if at then return {'OK', now, tonumber(string.match(asked, '%d+', at + #id))} end

local answer = 0
if #ARGV > 3 then
  for i = 4, #ARGV do answer = answer + redis.call('ZADD', due, now, ARGV[i] .. ARGV[2]) end
else
  answer = math.max(now, (tonumber(h[2]) or 0) + 1)
  if answer % 10 == 0 then answer = answer + 1 end         -- those may be ticks of the schedule
  redis.call('ZADD', due, now, string.format('%d', answer) .. ARGV[2])
  redis.call('HSET', ledger, 'manual', string.format('%d', answer))
end
redis.call('HSET', ledger, 'asked', string.sub(string.format('%s %013d ', id, answer) .. asked, 1, 8 * (#id + 15)))
redis.pcall('PUBLISH', ARGV[3], 'due')
return {'OK', now, answer}
