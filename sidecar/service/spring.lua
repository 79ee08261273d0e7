-- spring: make times of schedules due that have come, each as a timer of its own, and have their timers wait for the next ones.
--
-- KEYS  1 timers that are due, or will be  2 ledger of all timers  3 their history; then for each timer with a schedule (see timer)
--       its entry, that of the time to be made due, and that of the newest one that was
-- ARGV  1 how many entries the history keeps; then for each timer its member, the newest time that has come (ms), the one
--       after it (0 = it has ended), and what the history is told of older ones, which are missed, and of an overlap; '' = nothing
-- returns {OK, now, then for each timer: DUE; REPLACED: due in place of the time before, which no replica had claimed; OVERLAPPED: that
--          one runs, or is handed on, and this one is passed over; PAST: it was made due before; GONE: the timer does not wait for it}
local due, ledger, history = KEYS[1], KEYS[2], KEYS[3]
local answer, bytes, more = {'OK', now}, tonumber(redis.call('HGET', ledger, 'bytes')) or 0, 0
local kept = redis.call('MGET', unpack(KEYS, 4))           -- all is read before the first write: it may be refused
local function keep(text) redis.pcall('XADD', history, 'MAXLEN', '~', ARGV[1], '*', 'tick', text) end
for i = 0, (#ARGV - 1) / 5 - 1 do
  local timer, occurrence = KEYS[3 * i + 4], KEYS[3 * i + 5]
  local member, tick, following, missed, overlapped = unpack(ARGV, 5 * i + 2, 5 * i + 6)
  local newest, told, at, copy, set = string.match(kept[3 * i + 1] or '', '^series (%d+)(%+?) (%d+) (%S+) (.*)$') -- set: '<1 ..> <source>'
  local job, code, place = string.match(member, '^%d+ (%S+)'), 'GONE', at -- place: in the queue, that of the oldest time that waited
  if at and member == at .. ' ' .. job .. ' series 1 0 0 ' .. copy and redis.call('ZREM', due, member) == 1 then -- even when Redis' memory is full; then nothing is refused
    code = tonumber(tick) <= tonumber(newest) and 'PAST' or 'DUE'
    for n = 2, code == 'DUE' and 3 or 0 do                 -- a mark is not in the way
      local was, by, source = string.match(kept[3 * i + n] or '', '^(%d+) (%S+) [01] (.*)$')
      local before = was and was .. ' ' .. job .. '@' .. was .. ' timer 1 0 0 ' .. by
      local since = was and redis.call('ZSCORE', due, before)
      if since then
        code, more, place = code == 'DUE' and 'REPLACED' or code, more - #source, since
        redis.call('ZREM', due, before)
        redis.call('DEL', KEYS[3 * i + 3 + n])
        keep(string.format('{"job":"%s","first":%s,"tick":%s,"count":1,"outcome":"missed","ended":%d}', job, was, was, now))
      elseif string.find(kept[3 * i + n] or '', '^%d') then
        code = 'OVERLAPPED'
      end
    end
    if missed ~= '' and code ~= 'PAST' then keep(missed) end
    if code == 'OVERLAPPED' and told == '' then keep(overlapped) end
    if code == 'DUE' or code == 'REPLACED' then
      newest, more = tick, more + #set - 2
      redis.call('SET', occurrence, tick .. ' ' .. copy .. ' ' .. set)
      redis.call('ZADD', due, place, tick .. ' ' .. job .. '@' .. tick .. ' timer 1 0 0 ' .. copy)
    end
    if following == '0' then                               -- forgotten; a late copy of the request does not set it again
      redis.call('SET', timer, 'deleted - ' .. copy .. ' ' .. string.sub(set, 1, 1) .. ' ' .. newest, 'PX', 86400000)
      more = more - #set + 2
    else
      redis.call('SET', timer, 'series ' .. newest .. (code == 'OVERLAPPED' and '+ ' or ' ') .. following .. ' ' .. copy .. ' ' .. set)
      redis.call('ZADD', due, following, following .. ' ' .. job .. ' series 1 0 0 ' .. copy)
    end
  end
  answer[i + 3] = code
end
if more ~= 0 then redis.call('HSET', ledger, 'bytes', string.format('%d', math.max(bytes + more, 0))) end
return answer
