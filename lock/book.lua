-- book: count missed ticks, each once over all replicas, however often the request arrives.
--
-- KEYS  1 ledger  2 memo of the request
-- ARGV  1 the gaps that the caller has read  2 how many ticks of the schedule lie in them
-- returns {OK, now, 1 if this request counted them, else 0}
local ledger, memo, read = KEYS[1], KEYS[2], ARGV[1]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', ledger, 'gaps', 'missed')
local gaps = h[1] or ''

if redis.call('GET', memo) then return {'OK', now, 1} end
if read == '' or string.sub(gaps, 1, #read) ~= read then return {'OK', now, 0} end
redis.call('HSET', ledger, 'gaps', string.sub(gaps, #read + 1), 'missed', (tonumber(h[2]) or 0) + ARGV[2])
redis.call('SET', memo, 'booked', 'PX', 86400000)
return {'OK', now, 1}
