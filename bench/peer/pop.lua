-- Takes due ticks, and adds the next tick of each job with them.
-- KEYS: due ticks, running ticks, periods. ARGV: lease in ms. Returns the ms until the next tick, then "<job> <tick ms>" …
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 100)
local taken = {}
for i = 1, #found, 2 do
  local member, score = found[i], found[i + 1]
  local period = redis.call('HGET', KEYS[3], member)
  if period then -- a job, at its next tick
    redis.call('ZADD', KEYS[1], score + period, member)
    member = member .. ' ' .. string.format('%d', score)
  else -- a tick that a lease has given back
    redis.call('ZREM', KEYS[1], member)
  end
  redis.call('ZADD', KEYS[2], now + ARGV[1], member)
  taken[#taken + 1] = member
end
local wait = 1000
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if first[2] then
  wait = math.max(0, first[2] - now)
end
table.insert(taken, 1, wait)
return taken
