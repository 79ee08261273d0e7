-- ask: make ticks of a job due because somebody asked for them, once however often the request arrives.
--
-- KEYS  1 ledger  2 due  3 memo of the request  4 acts of operators: if it is given, the last of ARGV is the act to be kept there
-- ARGV  1 what follows the tick in a due member  2 channel of the nudges
--       3.. the ticks (ms), in order; none: one tick that no schedule has and that nobody asked for before, due at once
--           whatever becomes of Redis' clock
-- returns {OK, now, the tick that was made, or how many members were added}, {UNKNOWN, now}, {FULL, now, how many may wait}, or
--          {OTHER, now}: under this id somebody has asked for something else
-- Every look and this script read all waiting ticks, so their number has a bound. Ticks that the script makes have score 0:
-- 100 of them may wait of a job, and 1000 of all jobs. Given ticks may wait beside at most 5000 members of jobs in all. The
-- script does not move the ledger's tick: a request by hand takes no tick away from the table.
local ledger, due, memo, acts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local act = acts and table.remove(ARGV)

local h = redis.call('HMGET', ledger, 'born', 'manual')

local asked = ' ' .. (ARGV[3] or '') .. ARGV[1]            -- of many ticks the first one tells
local before, what = string.match(redis.call('GET', memo) or '', '^(%S+)(.*)$')
if what == asked or what == '' then return {'OK', now, tonumber(before)} end -- asked again, the same answer, for a day
if before then return {'OTHER', now} end
if not h[1] then redis.pcall('PUBLISH', ARGV[2], 'due') return {'UNKNOWN', now} end -- who lives registers it

local answer, waiting = 0, 0                               -- how many such ticks of the job wait
if #ARGV > 2 then
  if redis.call('ZCARD', due) > 5002 - #ARGV then return {'FULL', now, 5000} end
  for i = 3, #ARGV do answer = answer + redis.call('ZADD', due, now, ARGV[i] .. ARGV[1]) end
else
  local all, ours = redis.call('ZRANGE', due, 0, 0, 'BYSCORE', 'LIMIT', 0, 1000), string.match(ARGV[1], '^ %S+ %l+')
  for _, m in ipairs(all) do
    if string.find(m, ours, 1, true) then waiting = waiting + 1 end
  end
  if waiting >= 100 then return {'FULL', now, 100} end
  if #all >= 1000 then return {'FULL', now, 1000} end
  answer = math.max(now, (tonumber(h[2]) or 0) + 1)
  if answer % 10 == 0 then answer = answer + 1 end         -- those may be ticks of the schedule
  redis.call('ZADD', due, 0, string.format('%d', answer) .. ARGV[1])
  redis.call('HSET', ledger, 'manual', string.format('%d', answer))
end
redis.call('SET', memo, string.format('%d', answer) .. asked, 'PX', 86400000)
if act then redis.pcall('XADD', acts, 'MAXLEN', '~', '1000', '*', 'act', act, 'made', string.format('%d', answer)) end
if waiting < 20 then redis.pcall('PUBLISH', ARGV[2], 'due') end -- behind more it waits anyway, and each nudge has all of them read
return {'OK', now, answer}
