-- examine: tries each command that a replica needs, on keys of its own, which vanish after a second.
--
-- KEYS  1 string  2 hash  3 zset  4 stream
-- ARGV  1 channel of the nudges
-- returns {OK, now, then what Redis refused: command, its error, by turns}
local refused = {}
local function try(name, ...)
  local reply = redis.pcall(name, ...)
  if type(reply) == 'table' and reply.err then
    refused[#refused + 1], refused[#refused + 2] = name, reply.err
  end
end
local t = redis.call('TIME')

try('set', KEYS[1], 'x', 'PX', 1000)
try('get', KEYS[1])
try('mget', KEYS[1])
try('hset', KEYS[2], 'field', '1')
try('hget', KEYS[2], 'field')
try('hmget', KEYS[2], 'field')
try('hgetall', KEYS[2])
try('hdel', KEYS[2], 'other')
try('zadd', KEYS[3], 1, 'member')
try('zscore', KEYS[3], 'member')
try('zrange', KEYS[3], 0, 0)
try('zscan', KEYS[3], 0)
try('zcard', KEYS[3])
try('zrem', KEYS[3], 'other')
try('xadd', KEYS[4], '*', 'field', '1')
try('xrevrange', KEYS[4], '+', '-', 'COUNT', 1)
try('publish', ARGV[1], 'examined')
for i = 2, 4 do try('pexpire', KEYS[i], 1000) end
try('del', KEYS[1])
return {'OK', t[1] * 1000 + math.floor(t[2] / 1000), unpack(refused)}
