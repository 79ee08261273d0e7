-- claimed: which of many ticks are claimed, and what a claim of such a tick would hear.
--
-- KEYS  the ledgers of the jobs
-- ARGV  their ticks, in milliseconds; the last one is that of all further ledgers too
-- returns {now, for each of them: 0 if the tick is not claimed; '<when the ledger was born> <replica that claimed last>' if it is the
--          newest claimed tick and nothing more is known of the job; else
--          {newest claimed tick, newest tick settled as overlap, end of the last pause, newest tick that was handed on,
--           when the ledger was born, replica that claimed last, gaps, behind}, with false for what is not there}
local answers = {now}
for i, ledger in ipairs(KEYS) do
  local tick = ARGV[i] or ARGV[#ARGV]
  local h = redis.call('HMGET', ledger, 'tick', 'overlap', 'pausedTo', 'handed', 'born', 'by', 'gaps', 'behind')
  local more = h[2] or h[3] or h[4] or (h[7] or '') ~= '' or h[8]
  if tonumber(tick) > (tonumber(h[1]) or 0) then
    answers[i + 1] = 0
  elseif h[1] == tick and h[6] and not more then
    answers[i + 1] = h[5] .. ' ' .. h[6]
  else
    answers[i + 1] = h
  end
end
return answers
