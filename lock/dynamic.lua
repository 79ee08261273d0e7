-- dynamic: set or delete a job that is kept in Redis.
--
-- KEYS  1 jobs
-- ARGV  1 verb: set | delete  2 name of the job  3 id of the copy: the request's uuid, and its number behind a dot
--       4 until: after this Redis time this copy has no effect  5 channel of the nudges
--       set: 6 source  7 how many jobs there may be  8 how many bytes their sources may have together
-- returns {code, now, number}
--   set: SET, 1 if there was none of that name; FULL: there are too many; LARGE: they would be too large
--   delete: DELETED; NONE: there was none
--   STALE: this copy came too late
-- Fields that no job's name can be: '@revision' grows with every change, '@asked' are the newest few requests that changed
-- something, each with its answer.
local jobs, verb, name, request, source = KEYS[1], ARGV[1], ARGV[2], string.match(ARGV[3], '^[^.]*'), ARGV[6]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', jobs, name, '@revision', '@asked')
local there, revision, asked = h[1], h[2], h[3] or ''

local at = string.find(asked, request, 1, true)            -- asked again, the same answer
if at then
  local code, number = string.match(asked, '^ (%u+) (%d)', at + #request)
  return {code, now, tonumber(number)}
end
if now > tonumber(ARGV[4]) then return {'STALE', now, 0} end

local code, number = 'DELETED', 0
if verb == 'set' then
  if there == source then return {'SET', now, 0} end
  if not there and redis.call('HLEN', jobs) - (revision and 2 or 0) >= tonumber(ARGV[7]) then return {'FULL', now, 0} end
  local all, size = redis.call('HGETALL', jobs), #source
  for i = 1, #all, 2 do
    if all[i] ~= name and string.sub(all[i], 1, 1) ~= '@' then size = size + #all[i + 1] end
  end
  if size > tonumber(ARGV[8]) then return {'LARGE', now, 0} end
  code, number = 'SET', there and 0 or 1
elseif not there then
  return {'NONE', now, 0}
end

-- Greater than any before, also over the loss of all data: who compares it must not take another set of jobs for his own.
revision = string.format('%d', math.max((tonumber(revision) or 0) + 1, now))
if verb == 'delete' then redis.call('HDEL', jobs, name) end -- first: it is not refused when Redis' memory is full
asked = string.sub(request .. ' ' .. code .. ' ' .. number .. ' ' .. asked, 1, 3000)
redis.call('HSET', jobs, '@revision', revision, '@asked', asked)
if verb == 'set' then redis.call('HSET', jobs, name, source) end
redis.pcall('PUBLISH', ARGV[5], 'jobs')
return {code, now, number}
