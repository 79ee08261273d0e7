-- Gives back ticks whose lease is over, and adds the jobs that Redis does not know.
-- KEYS: due ticks, running ticks, periods. ARGV: name and period in ms of each job.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('ZREM', KEYS[2], member)
  redis.call('ZADD', KEYS[1], now, member)
end
for i = 1, #ARGV, 2 do
  local period = tonumber(ARGV[i + 1])
  redis.call('ZADD', KEYS[1], 'NX', (math.floor(now / period) + 1) * period, ARGV[i])
  redis.call('HSET', KEYS[3], ARGV[i], period)
end
