-- timer: set a timer, or delete it.
--
-- KEYS  1 entry of the timer  2 timers that are due, or will be  3 ledger of all timers
-- ARGV  1 verb: set | delete  2 id of the timer  3 id of the copy: that of the request, and its number behind a dot
--       4 until: after this Redis time this copy has no effect
--       set: 5 when it comes due (ms)  6 source  7 how many timers may wait  8 channel of the nudges
--       9 how many bytes their sources may have together  10 'series': it has a schedule
-- returns {code, now, number}; STALE: this copy came too late
--   set: SET, 1 if there was none of that id, 2 if the same one waits, 0 if another did, when it comes due; FIRED: it comes too late, for a day; FULL: there are too many;
--     LARGE: their sources would have more bytes than this number
--   delete: DELETED; NONE: it does not wait, or there never was one; both with the newest time of its schedule that was made due
-- The entry is '<due> <copy that set it> <1 if there was none> <source>'. The timer waits while the member that these make is
-- due; after that, a replica is dealing with it. The member is new at every enqueue, as every other is. A timer leaves for a day
-- 'fired - <copy that set it> <1 ..>' (see settle), or for ten minutes 'deleted <request that did so> <copy that set it> <1 ..> <newest>'
-- (for a day if its schedule had times that came). The field `bytes` of the ledger is how many bytes the sources of all entries have.
-- With a schedule the entry is 'series <newest> <due> ..', and waits until it ends: spring makes each of its times due as a timer of its
-- own, '<id>@<time>', which leaves nothing when it has run. <newest> is the last one (0 = none; + = an overlap since was told): no time up to it is made due again.
local timer, due, ledger = KEYS[1], KEYS[2], KEYS[3]
local verb, id, copy, at, source, kind = ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6], ARGV[10] or 'timer'
local entry = redis.call('GET', timer) or ''
local newest, series = string.match(entry, '^series (%d+)%+? (.*)$')
local setAt, setBy, new, setTo = string.match(series or entry, '^(%d+) (%S+) ([01]) (.*)$')
local mark, deletedBy, setOnce, was, last = string.match(entry, '^(%a+) (%S+) (%S+) ([01]) ?(%d*)$')
local before = series and 'series' or 'timer'
newest = newest or tonumber(last) and last or '0'

local function member(of, ms, nonce) return ms .. ' timer:' .. id .. ' ' .. of .. ' 1 0 0 ' .. nonce end
local function request(of) return string.match(of or '', '^[^.]*') end
local isDue = setAt and redis.call('ZSCORE', due, member(before, setAt, setBy))
local waits = isDue or setAt and series                    -- a schedule whose member is lost is set anew, or deleted

-- bytes is what the sources have together when this many come to them.
local function bytes(more) return math.max((tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more, 0) end
local function weigh(more) redis.call('HSET', ledger, 'bytes', string.format('%d', bytes(more))) end

-- Asked again, the same answer.
if verb == 'set' and request(setBy) == request(copy) then return {'SET', now, tonumber(new), tonumber(setAt)} end
if verb == 'set' and request(setOnce) == request(copy) then return {'SET', now, tonumber(was), tonumber(at)} end
if verb == 'delete' and deletedBy == request(copy) then return {'DELETED', now, tonumber(newest)} end
if now > tonumber(ARGV[4]) then return {'STALE', now, 0} end

if verb == 'delete' then
  if not waits then return {'NONE', now, tonumber(newest)} end
  redis.call('ZREM', due, member(before, setAt, setBy))    -- first: it is not refused when Redis' memory is full
  redis.call('SET', timer, 'deleted ' .. request(copy) .. ' ' .. setBy .. ' ' .. new .. ' ' .. newest, 'PX', newest == '0' and 600000 or 86400000)
  weigh(-#setTo)
  return {'DELETED', now, tonumber(newest)}
end

if waits then
  if isDue and setTo == source and (setAt == at or series) then return {'SET', now, 2, tonumber(setAt)} end
elseif entry ~= '' and mark ~= 'deleted' then
  return {'FIRED', now, 0}
elseif redis.call('ZCARD', due) >= tonumber(ARGV[7]) then
  return {'FULL', now, 0}
end
if series and kind == 'series' and isDue and tonumber(setAt) <= now then at = setAt end -- it has come, and is not lost
local more = #source - (waits and #setTo or 0)
if more > 0 and bytes(more) > tonumber(ARGV[9]) then return {'LARGE', now, tonumber(ARGV[9])} end
redis.call('ZADD', due, at, member(kind, at, copy))        -- first: should it be no sorted set, nothing is written
if waits then redis.call('ZREM', due, member(before, setAt, setBy)) end
redis.call('SET', timer, (kind == 'series' and 'series ' .. newest .. ' ' or '') .. at .. ' ' .. copy .. (waits and ' 0 ' or ' 1 ') .. source)
weigh(more)
local first = redis.call('ZRANGE', due, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1] -- at rest, replicas have looked 31 s later
if tonumber(at) <= now or tonumber(at) < now + 31000 and first == member(kind, at, copy) then redis.pcall('PUBLISH', ARGV[8], 'due') end
return {'SET', now, waits and 0 or 1, tonumber(at)}
