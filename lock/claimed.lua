-- claimed: which of many ticks are claimed, and what a claim of such a tick would hear.
--
-- KEYS  the ledgers of the jobs
-- ARGV  their ticks, in milliseconds
-- returns {now, for each of them: 0 if the tick is not claimed, else
--          {newest claimed tick, newest tick settled as overlap, end of the last pause, newest tick that was handed on,
--           when the ledger was born, replica that claimed last, gaps, behind}, with false for what is not there}
local t = redis.call('TIME')
local answers = {t[1] * 1000 + math.floor(t[2] / 1000)}
for i, ledger in ipairs(KEYS) do
  local h = redis.call('HMGET', ledger, 'tick', 'overlap', 'pausedTo', 'handed', 'born', 'by', 'gaps', 'behind')
  answers[i + 1] = tonumber(ARGV[i]) <= (tonumber(h[1]) or 0) and h or 0
end
return answers
