-- dynamic: set or delete a job that is kept in Redis.
--
-- KEYS  1 jobs  2 memo of the request  3 acts of operators: if it is given, the last of ARGV is the act to be kept there
-- ARGV  1 verb: set | delete  2 name of the job  3 until: after this Redis time this copy has no effect  4 channel of the nudges
--       set: 5 source  6 how many jobs there may be  7 how many bytes their sources may have together
-- returns {code, now, number}
--   set: SET, 1 if there was none of that name; FULL: there are too many; LARGE: they would have more bytes than this number
--   delete: DELETED; NONE: there was none
--   STALE: this copy came too late
-- The field '@revision', which no job's name can be, grows with every change.
local act = KEYS[3] and table.remove(ARGV)
local jobs, memo, acts, verb, name, source = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[5]

local h = redis.call('HMGET', jobs, name, '@revision')
local there, revision = h[1], h[2]

local before = redis.call('GET', memo)                     -- asked again, the same answer
if before then
  local code, number = string.match(before, '^(%u+) (%d)')
  return {code, now, tonumber(number)}
end
if now > tonumber(ARGV[3]) then return {'STALE', now, 0} end

local code, number = 'DELETED', 0
if verb == 'set' then
  if there == source then return {'SET', now, 0} end
  if not there and redis.call('HLEN', jobs) - (revision and 1 or 0) >= tonumber(ARGV[6]) then return {'FULL', now, 0} end
  local all, size = redis.call('HGETALL', jobs), #source
  for i = 1, #all, 2 do
    if all[i] ~= name and string.sub(all[i], 1, 1) ~= '@' then size = size + #all[i + 1] end
  end
  if size > tonumber(ARGV[7]) then return {'LARGE', now, tonumber(ARGV[7])} end
  code, number = 'SET', there and 0 or 1
elseif not there then
  return {'NONE', now, 0}
end

-- Greater than any before, even after a loss of all data: a replica that compares it must notice every other set of jobs.
revision = string.format('%d', math.max((tonumber(revision) or 0) + 1, now))
if verb == 'delete' then redis.call('HDEL', jobs, name) end -- first: it is not refused when Redis' memory is full
redis.call('HSET', jobs, '@revision', revision)
if verb == 'set' then redis.call('HSET', jobs, name, source) end
redis.call('SET', memo, code .. ' ' .. number, 'PX', 86400000)
if act then redis.pcall('XADD', acts, 'MAXLEN', '~', '1000', '*', 'act', act) end
redis.pcall('PUBLISH', ARGV[4], 'jobs')
return {code, now, number}
