//go:build !race

// The mutants are run without the race detector (see the Makefile), which makes them three times as slow and sees nothing of
// scripts.

package lock

import (
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/results"
)

var mutantNamed = regexp.MustCompile("")

func init() {
	flag.Func("mutants", "the mutants to run, by a regular expression", func(s string) (err error) {
		mutantNamed, err = regexp.Compile(s)
		return err
	})
}

// A mutant is a script with one thought left out. Each has to be noticed, or what notices the rest is worth nothing.
type mutant struct{ script, what, text, instead string }

var mutants = slices.Concat(acquireMutants, settleMutants, otherMutants)

var acquireMutants = []mutant{
	// The answers that most askers hear.
	{"acquire", "a new ledger is not asked for", "if not h[1] then return answer('UNKNOWN') end", ""},
	{"acquire", "a late copy has an effect", "if now > tonumber(ARGV[4]) then return answer('STALE') end", ""},
	{"acquire", "a claimed tick is claimed again", "  if tick <= claimed then return answer(stands and 'DUE' or 'FIRED') end\n", ""},
	{"acquire", "a tick that stands behind a run has been fired", "answer(stands and 'DUE' or 'FIRED')", "answer('FIRED')"},
	{"acquire", "a tick that was handed on has been fired", "if code == 'FIRED' and told[3] == ARGV[3] then code = 'DUE' end", ""},
	{"acquire", "a tick that was passed over is claimed", "  if tick < newest and not stands then return answer('FIRED') end", ""},
	{"acquire", "a tick that was passed over hides the one that was refused", "if tick < newest and not stands then", "if tick < newest then"},
	{"acquire", "the newest refused tick is not known", "    newest = math.max(newest, tonumber(refused))\n", ""},
	{"acquire", "a refused tick is not known again", "if tonumber(refused) == tick then stands = how end", ""},
	{"acquire", "all refused ticks are this one", "if tonumber(refused) == tick then stands", "if true then stands"},
	{"acquire", "nobody is told what overlapped", "tonumber(told[1]) or 0, pausedTo", "0, pausedTo"},
	{"acquire", "nobody is told of gaps", "more or 0, gaps, tonumber(h[1])", "more or 0, '', tonumber(h[1])"},
	// Asked again.
	{"acquire", "asked again, another answer", "if mine then", "if false then"},
	{"acquire", "asked again, the thief's lock is taken", "if owner and owner ~= uuid then return answer('LOST') end", ""},
	{"acquire", "asked again, the entry is not renewed",
		"  redis.call('ZADD', running, leaseEnd, uuid .. ' ' .. job)\n  redis.call('SET', lock, uuid, 'PX', ARGV[5])",
		"  redis.call('SET', lock, uuid, 'PX', ARGV[5])"},
	{"acquire", "asked again, the lock is not renewed",
		"  redis.call('SET', lock, uuid, 'PX', ARGV[5])\n  return answer('WON', t", "  return answer('WON', t"},
	{"acquire", "asked again, another token", "return answer('WON', tonumber(itsToken))", "return answer('WON', tonumber(itsToken) + 1)"},
	{"acquire", "asked again, another previous tick", "  claimed = tonumber(previous)\n", ""},
	// Pauses.
	{"acquire", "a paused job is claimed", "  if kept then return answer(", "  if false then return answer("},
	{"acquire", "a pause has no end", "if ends and ends ~= 0 and math.max(", "if false and math.max("},
	{"acquire", "a pause is over at once", "if ends and ends ~= 0 and math.max(", "if ends and math.max("},
	{"acquire", "a pause settles by the clock", "math.max(asked and now or 0, tick)", "now"},
	{"acquire", "a pause lets pass what is due", "local since = (asked == 'manual' or asked == 'backfill') and", "local since = asked and 1e15 or"},
	{"acquire", "a pause lets pass what waited by hand", "not (since and (since == 0 and tick or since) >= tonumber(began))", "not since"},
	{"acquire", "a pause keeps back what was asked for by hand since", "not (since and (since == 0 and tick or since) >= tonumber(began))", "true"},
	{"acquire", "a pause goes by the score of a trigger", "(since == 0 and tick or since)", "since"},
	{"settle", "a run by hand takes the tick beside it away", "local spared = byHand and string.match", "local spared = false and string.match"},
	{"settle", "a run by hand takes no tick beside it away", "tick ~= spared and began", "not spared and began"},
	{"settle", "every run takes no tick away", "local spared = byHand and", "local spared = kind and"},
	{"settle", "a rerun is a success of now", "once and math.max(tonumber(tick), tonumber(h[11]) or 0) or now", "now"},
	{"settle", "a rerun makes the last success older", "math.max(tonumber(tick), tonumber(h[11]) or 0)", "tonumber(tick)"},
	{"acquire", "a pause keeps back a trigger", "asked == 'manual' or ", ""},
	{"acquire", "a pause keeps back a backfill", " or asked == 'backfill'", ""},
	{"acquire", "nobody is told when a pause ends", "'PAUSED', kept)", "'PAUSED')"},
	{"acquire", "the end of the pause of all jobs is told, though the other one ends later", "math.max(kept or 0, ends)", "ends"},
	{"acquire", "the end of one pause is told, though the other has none", "kept ~= 0 and ends ~= 0 and", "kept ~= 0 and"},
	{"acquire", "the end of the pause of all jobs is told, though the other has none", "kept ~= 0 and ends ~= 0 and", "ends ~= 0 and"},
	{"acquire", "the pause of all jobs replaces the job's own", "ipairs({h[8] or '', h[9] or ''})", "ipairs({h[9] or h[8] or ''})"},
	{"acquire", "a job's own pause replaces that of all jobs", "ipairs({h[8] or '', h[9] or ''})", "ipairs({h[8] or h[9] or ''})"},
	{"acquire", "the pause of all jobs holds none", "if h[8] or h[9] then", "if h[8] then"},
	{"acquire", "a job's own pause does not hold it", "if h[8] or h[9] then", "if h[9] then"},
	{"acquire", "when a pause has ended is not told", "  for _, pause in ipairs(pauses) do pausedTo = math.max(pausedTo, pause[2]) end\n", ""},
	{"acquire", "a pause began after its end", "math.min(tonumber(began), ends), math.min", "tonumber(began), math.min"},
	{"acquire", "ticks before a pause are not missed", "      missed(from, pause[1])\n", ""},
	{"acquire", "ticks of the pause before the last are missed", "    from = math.max(from, unpaused)\n", ""},
	{"acquire", "ticks between two pauses are not missed", "  table.sort(pauses, function(a, b) return a[1] < b[1] end)\n", ""},
	{"acquire", "a tick that has yet to come is of the pause", "not asked and tonumber(came) > now and 'EARLY' or 'PAUSED'", "'PAUSED'"},
	{"acquire", "what is due in a pause is early", "not asked and tonumber(came) > now and", "tonumber(came) > now and"},
	// The authority.
	{"acquire", "a due member is not asked for", "if not redis.call('ZSCORE', due, member) then return answer('GONE') end", ""},
	{"acquire", "an early claim", "  if tick > now + tonumber(ARGV[6]) then return answer('EARLY') end\n", ""},
	{"acquire", "an old list is believed", "  if older ~= '' and tonumber(older) ~= claimed then return answer('GAP') end\n", ""},
	{"acquire", "who has no slot wins", "if ARGV[14] == 'look' and not live then return answer('FREE') end", ""},
	{"acquire", "who has no slot is not told of the run", "if ARGV[14] == 'look' and not live then", "if ARGV[14] == 'look' then"},
	{"acquire", "a foreign lock is taken", "  return answer('LOCKED')\n", ""},
	{"acquire", "a lingering lock is in the way", "if owner and (slot ~= '' or owner ~= last) then", "if owner then"},
	{"acquire", "the same tick runs twice", "if redis.call('HGET', ledger, 'r:' .. owner) then return answer('HELD') end", ""},
	// Live runs.
	{"acquire", "a tick starts beside a run", "local live = runs ~= '' and policy ~= 'Allow'", "local live = false"},
	{"acquire", "a tick starts beside a run of Allow",
		"local live = runs ~= '' and policy ~= 'Allow'",
		"local live = runs ~= '' and policy ~= 'Allow' and redis.call('EXISTS', lock) == 1"},
	{"acquire", "Allow waits for others", "local live = runs ~= '' and policy ~= 'Allow'", "local live = runs ~= ''"},
	{"acquire", "a limit is none", "if limit > 0 then live = ", "if limit > 0 then live = false and "},
	{"acquire", "one run more than the limit", ">= limit end", "> limit end"},
	{"acquire", "a limit of two is one", ">= limit end", ">= limit - 1 end"},
	{"acquire", "what the limit refuses waits", " or limit > 0 and live and not listed", ""},
	{"acquire", "a list is refused by the limit", "limit > 0 and live and not listed", "limit > 0 and live"},
	{"acquire", "a due member does not wait for the run", "  if member ~= '' then return inTheWay('HELD') end\n", ""},
	{"acquire", "nobody is told how long the run has its lease",
		"tonumber(redis.call('ZSCORE', running, string.match(runs, '(%S+) $') .. ' ' .. job) or 0)", "0"},
	{"acquire", "the oldest run's lease is told", "string.match(runs, '(%S+) $')", "string.match(runs, '%S+')"},
	{"acquire", "the list of runs stands still", "'runs', runs .. uuid .. ' ', 'last', uuid)", "'last', uuid)"},
	{"acquire", "runs of Allow are in nobody's way",
		"then redis.call('HSET', ledger, 'from', from, 'runs', runs .. uuid .. ' ') end -- timers", "then end -- timers"},
	{"acquire", "only the newest run of Allow is known",
		"redis.call('HSET', ledger, 'from', from, 'runs', runs .. uuid .. ' ') end", "redis.call('HSET', ledger, 'from', from, 'runs', uuid .. ' ') end"},
	// Refusals.
	{"acquire", "a tick overlaps before it is due",
		"    if tonumber(came) > now then return answer('EARLY') end -- the run may be over when it comes due\n", ""},
	{"acquire", "a tick overlaps before it is due by jitter", "if tonumber(came) > now then return", "if tick > now then return"},
	{"acquire", "an overlap is not written down",
		"if behind ~= before then said = redis.pcall('HSET', ledger, 'behind', behind, 'gaps', gaps) end", ""},
	{"acquire", "an older overlap is forgotten", "behind = behind .. '-' .. refused", "behind = '-' .. refused"},
	{"acquire", "a tick is refused twice", "open(refused) and not string.find(behind, refused .. '@', 1, true)", "open(refused)"},
	{"acquire", "when a list came due is forgotten", "ARGV[i + 1] or came", "came"},
	{"acquire", "when a tick came due is forgotten",
		"local came, slot, member, older, listed = ARGV[9] or ARGV[3],",
		"local came, slot, member, older, listed = ARGV[3],"},
	{"acquire", "a hundred and one ticks stand behind a run", "while entries > 100 and", "while false and"},
	{"acquire", "the newest of a hundred ticks is forgotten", "string.match(behind, '(%d+)@(%d+)')", "string.match(behind, '(%d+)@(%d+) $')"},
	{"acquire", "the oldest of a hundred ticks is no overlap",
		"if overlaps then redis.pcall('HSET', ledger, 'overlap', oldest) end", ""},
	{"acquire", "the oldest of a hundred ticks overlaps with a later run",
		"began and tonumber(began) <= tonumber(itCame) and tonumber(itCame) <= lived", "tonumber(itCame) <= lived"},
	{"acquire", "the oldest of a hundred ticks does not overlap with a run's beginning",
		"tonumber(began) <= tonumber(itCame) and tonumber(itCame) <= lived",
		"tonumber(began) < tonumber(itCame) and tonumber(itCame) <= lived"},
	{"acquire", "the oldest of a hundred ticks overlaps with a run that may be dead",
		"<= tonumber(itCame) and tonumber(itCame) <= lived", "<= tonumber(itCame)"},
	{"acquire", "the oldest of a hundred ticks is not counted", "gap(tonumber(oldest) - 1, tonumber(oldest) + 1, overlaps and ':overlapped' or '')", ""},
	{"acquire", "the oldest of a hundred ticks was missed, though it overlaps", "overlaps and ':overlapped' or ''", "''"},
	{"acquire", "the ticks before a refused one are not missed", "      if behind ~= before then passOver() end\n", ""},
	{"acquire", "the queue holds two", "local full = queues and waiting", "local full = false"},
	{"acquire", "a list does not find room in the queue", "local queues = policy == 'Queue' and live and not listed", "local queues = policy == 'Queue' and live"},
	{"acquire", "what is due leaves room in the queue", "then full = true end", "then full = false end"},
	{"acquire", "what is due of others fills the queue", "if whose == job and asked", "if asked"},
	{"acquire", "a trigger fills the queue", "and asked ~= 'manual' and asked", "and asked"},
	{"acquire", "a backfill fills the queue", "and asked ~= 'backfill' then full", "then full"},
	{"acquire", "what the queue refuses is not settled",
		"said = redis.pcall('HSET', ledger, 'tick', ARGV[3], 'overlap', ARGV[3], 'gaps'",
		"said = redis.pcall('HSET', ledger, 'gaps'"},
	{"acquire", "what the queue refuses is no overlap", "'tick', ARGV[3], 'overlap', ARGV[3], 'gaps'", "'tick', ARGV[3], 'gaps'"},
	{"acquire", "what the queue refuses may be fired all the same", "      if type(said) == 'number' then keep() end\n", ""},
	{"acquire", "what the queue refuses stands behind the run", "      take(ARGV[3])\n      gap", "      gap"},
	{"acquire", "what the queue refuses has no fate", "      gap(tick - 1, tick + 1, ':overlapped')\n", ""},
	{"acquire", "the ticks of a pause have no fate",
		"      gap(math.max(from, pause[1] - 1), pause[2] + 1, ':paused')\n", ""},
	{"acquire", "a claimed tick was paused too", "gap(math.max(from, pause[1] - 1),", "gap(pause[1] - 1,"},
	{"acquire", "the first instant of a pause is not of it", "pause[1] - 1), pause[2] + 1", "pause[1]), pause[2] + 1"},
	{"acquire", "the last instant of a pause is not of it", "pause[1] - 1), pause[2] + 1", "pause[1] - 1), pause[2]"},
	{"acquire", "the ticks before one that the queue refuses are not missed", "      if not stands then passOver() end\n", ""},
	// Gaps.
	{"acquire", "missed ticks are not written down", "if tonumber(ARGV[11] or 0) > from then missed(from, upTo) end", ""},
	{"acquire", "a gap without a tick is one", "if tonumber(ARGV[11] or 0) > from then missed(from, upTo) end", "missed(from, upTo)"},
	{"acquire", "what the asker has heard was missed",
		"tonumber(redis.call('HGET', ledger, 'since') or 0), tonumber(ARGV[10] or 0))",
		"tonumber(redis.call('HGET', ledger, 'since') or 0))"},
	{"acquire", "ticks before a change were missed",
		"math.max(newest, tonumber(redis.call('HGET', ledger, 'since') or 0), ", "math.max(newest, "},
	{"acquire", "ticks in a pause were missed", "      from = math.max(from, pause[2])\n", ""},
	{"acquire", "refused ticks were missed", "local from = math.max(newest, ", "local from = math.max(claimed, "},
	{"acquire", "the ticks of a list were missed", "local upTo = listed and string.match(ARGV[17], '^%d+') or tick", "local upTo = tick"},
	{"acquire", "a claim forgets the gap", "if gaps ~= written then redis.call('HSET', ledger, 'gaps', gaps) end", ""},
	{"acquire", "a list forgets the gap", "'by', replica, 'gaps', gaps, 'handed', ARGV[3])", "'by', replica, 'handed', ARGV[3])"},
	{"acquire", "a tick that waits forgets the gap", "' ', 'by', replica, 'gaps', gaps)", "' ', 'by', replica)"},
	{"acquire", "a gap of the ledger is forgotten", "local function gap(from, to, fate)\n", "local function gap(from, to, fate)\n    gaps = ''\n"},
	{"acquire", "a pause leaves no gap when nothing else is to be written", "behind ~= '' or #pauses > 0 or (ARGV", "behind ~= '' or (ARGV"},
	{"acquire", "missed ticks are not written down when nothing else is", " or (ARGV[11] or '0') ~= '0') then", ") then"},
	{"acquire", "what Allow claims stays behind a run", "(listed or behind ~= '' or #pauses", "(listed or #pauses"},
	{"acquire", "a gap has no room for a tick", "if to - from > 1 then gaps = gaps", "if true then gaps = gaps"},
	// Lists.
	{"acquire", "older ticks are not made due", "then redis.call('ZADD', due, now, ARGV[i]) end", "then end"},
	{"acquire", "older ticks are claimed, and the newest runs at once",
		"  if listed then                                           -- claimed now",
		"  if false then                                           -- claimed now"},
	{"acquire", "ticks of a pause are fired late", "return tonumber(listedTick) > pausedTo and (", "return ("},
	{"acquire", "ticks that were passed over are fired late",
		"and (tonumber(listedTick) > newest or string.find(h[5] or '', listedTick .. '@', 1, true))", ""},
	{"acquire", "refused ticks of a list are not fired late",
		"(tonumber(listedTick) > newest or string.find(h[5] or '', listedTick .. '@', 1, true))",
		"tonumber(listedTick) > newest"},
	{"acquire", "a list leaves its ticks behind the run", "    for i = 17, #ARGV, 2 do take(string.match(ARGV[i], '^%d+')) end\n", ""},
	{"acquire", "what waits comes after a list", "    if waiting then take(waiting) end\n", "    waiting = nil\n"},
	{"acquire", "a list hides what waits", "    if waiting then redis.call('ZADD', due, now, waiting .. ' ' .. job .. ' catchup 1 0 0 ' .. uuid) end -- the first of them\n", ""},
	{"acquire", "a list forgets what leaves the run", "    if behind ~= (h[5] or '') then keep() end\n", ""},
	{"acquire", "a list does not say that it was handed on", "'gaps', gaps, 'handed', ARGV[3])", "'gaps', gaps)"},
	{"acquire", "a list nudges nobody", "    redis.pcall('PUBLISH', ARGV[16], 'due')\n", ""},
	// Queue and Replace.
	{"acquire", "a queued tick is not written down",
		"'behind', behind .. '+' .. ARGV[3] .. '@' .. came .. ' ', 'by'", "'behind', behind, 'by'"},
	{"acquire", "a queued tick is not claimed",
		"redis.call('HSET', ledger, 'tick', ARGV[3], 'behind', behind .. '+'",
		"redis.call('HSET', ledger, 'behind', behind .. '+'"},
	{"acquire", "a tick waits, and was refused",
		"  elseif live then                                         " +
			"-- Queue and Replace: claimed now, set free by the end of the last live run\n    take(ARGV[3])\n",
		"  elseif live then\n"},
	{"acquire", "two ticks wait", "      take(waiting)\n", ""},
	{"acquire", "what was displaced is not missed", "then gap(tonumber(waiting) - 1, tonumber(waiting) + 1, ':replaced') end", "then end"},
	{"acquire", "what was displaced is missed, though it is from before its job came back",
		"if tonumber(waiting) > tonumber(redis.call('HGET', ledger, 'since') or 0) then", "if true then"},
	{"acquire", "nobody is told to end", "redis.call('HSET', ledger, 'stop', string.format('%d', token))", ""},
	{"acquire", "the newest run is not told to end", "'stop', string.format('%d', token)", "'stop', string.format('%d', token - 1)"},
	{"acquire", "the run to come is told to end", "'stop', string.format('%d', token)", "'stop', string.format('%d', token + 1000000)"},
	{"acquire", "Queue tells the run to end", "if live and policy == 'Replace' then", "if live then"},
	{"acquire", "a run is told to end without a nudge", "redis.pcall('PUBLISH', ARGV[16], 'stop ' .. job)", ""},
	{"acquire", "a refused tick that is claimed stays refused", "    take(ARGV[3])\n    keep()\n", ""},
	// The claim.
	{"acquire", "the token stands still", "math.max(token + 1, now)", "math.max(token, now)"},
	{"acquire", "the token falls back with the clock", "math.max(token + 1, now)", "now"},
	{"acquire", "the token falls back after a loss", "math.max(token + 1, now)", "token + 1"},
	{"acquire", "no entry in running", "redis.call('ZADD', running, leaseEnd, uuid .. ' ' .. job)  -- first", "-- first"},
	{"acquire", "the record has another previous tick", "' ' .. (h[2] or 0) .. ' ' .. began", "' ' .. ARGV[3] .. ' ' .. began"},
	{"acquire", "the record has another beginning",
		"local began = token == now and tokenText or string.format('%d', now)", "local began = tokenText"},
	{"acquire", "the tick is not claimed", "local moved = member == '' and ARGV[3] or h[2] or 0", "local moved = h[2] or 0"},
	{"acquire", "a due member moves the ledger's tick", "local moved = member == '' and ARGV[3] or h[2] or 0", "local moved = ARGV[3]"},
	{"acquire", "the lingering lock is not known", "'runs', runs .. uuid .. ' ', 'last', uuid)", "'runs', runs .. uuid .. ' ')"},
	{"acquire", "a lingering lock stays", "if owner then redis.call('DEL', lock) end", ""},
	{"acquire", "the lock has no end", "'NX', 'EX', math.ceil(ttl / 1000)", "'NX'"},
	{"acquire", "a due member stays", "  redis.call('ZREM', due, member)\n", ""},
	{"acquire", "what was handed on is handed on when it has been won",
		"  if redis.call('HGET', ledger, 'handed') == ARGV[3] then redis.call('HDEL', ledger, 'handed') end\n", ""},
	{"acquire", "what was handed on is forgotten when another is won",
		"if redis.call('HGET', ledger, 'handed') == ARGV[3] then redis.call('HDEL', ledger, 'handed') end",
		"redis.call('HDEL', ledger, 'handed')"},
}

var settleMutants = []mutant{
	{"acquire", "a run is told what succeeded after its tick", "since < tick and since or 0", "since"},
	{"acquire", "what is run again begins elsewhere", "if not string.find(from, ' ' .. ARGV[3] .. ':', 1, true) then from = from",
		"if true then from = string.gsub(from, ' ' .. ARGV[3] .. ':%d+', '')"},
	{"acquire", "ticks that never end are kept for ever", "if #from > 5000 then", "if false then"},
	{"drop", "what had succeeded before a dropped tick is kept", "if there == 1 and known > 0 then", "if false then"},
	{"settle", "a lease that moved is reaped", "if moved or record and", "if record and"},
	{"settle", "a run that came back is reaped as one of which nothing is known", "if moved or record and entry == '' then", "if moved then"},
	{"settle", "what has no record stays", "if moved or record and entry == '' then", "if moved or entry == '' then"},
	{"settle", "another run is settled", "elseif not record then", "elseif false then"},
	{"settle", "a late finish leaves the re-run due", "redis.call('ZREM', due, again) == 1", "redis.call('ZSCORE', due, again)"},
	{"settle", "what a late finish takes back waits", "      if redis.call('HGET', ledger, 'handed') == string.match(again, '^%d+') then redis.call('HDEL', ledger, 'handed') end\n", ""},
	{"settle", "a run that was lost is not run again", "if again ~= '' and redis.call('HGET', ledger, 'born') ~= ARGV[10] and", "if false and"},
	{"settle", "a run that was settled is run again",
		"redis.call('HGET', ledger, 'born') ~= ARGV[10] and redis.call('SET', memo", "redis.call('SET', memo"},
	{"settle", "a run that was lost is run again twice",
		"redis.call('SET', memo, 'requeued', 'NX', 'PX', day)", "redis.call('SET', memo, 'requeued', 'PX', day)"},
	{"settle", "a run that was lost is remembered for ever", "'requeued', 'NX', 'PX', day)", "'requeued', 'NX')"},
	{"settle", "nothing is run again",
		"    if again ~= '' and redis.call('HGET', ledger, 'born')", "    if redis.call('HGET', ledger, 'born')"},
	{"settle", "late evidence is not believed",
		"elseif code == 'LATE' and again ~= '' then               -- recorded as interrupted, but its replica knows that it never started\n" +
			"    enqueue(again, wait)",
		"elseif false then"},
	{"settle", "late evidence is believed twice", "if code == 'LATE' then redis.pcall('SET', memo, 'taken ' .. watcher, 'PX', day) end", ""},
	{"settle", "a watcher whose takeover was late is not known again", "'taken ' .. watcher, 'PX'", "'taken x', 'PX'"},
	{"settle", "that a takeover was late is remembered for ever", "'taken ' .. watcher, 'PX', day)", "'taken ' .. watcher)"},
	{"settle", "a watcher that asks again was too late", "code = watcher == ARGV[10] and 'OK' or 'MOVED'", "code = 'MOVED'"},
	{"settle", "every watcher has taken a run over", "code = watcher == ARGV[10] and 'OK' or 'MOVED'", "code = watcher and 'OK' or 'MOVED'"},
	{"settle", "every watcher is told how the job stands", "if code ~= 'MOVED' and by == verb", "if by == verb"},
	{"settle", "a takeover is not remembered where the tick is due again", "kept, how = over and forget() or '', 'taken '", "kept, how = over and forget() or '', over and 'taken ' or 'taken x'"},
	{"settle", "a tick fails as often as it ends", "if not once and (tick ~= h[5] or before == 0) then", "if not once then"},
	{"settle", "a tick that has succeeded cannot fail", "(tick ~= h[5] or before == 0)", "tick ~= h[5]"},
	{"settle", "evidence is not needed", "code = how == 'dead' and 'LATE' or 'NONE'", "code = 'LATE'"},
	{"settle", "what evidence makes due nudges nobody", "  wake()\n  return {code", "  return {code"},
	{"settle", "the record of the only run stays", "'HDEL', ledger, 'r:' .. uuid, 'x:'", "'HDEL', ledger, live == '' and 'x:' .. uuid or 'r:' .. uuid, 'x:'"},
	{"settle", "the only run stays", "live == '' and 'runs' or 'x:' .. uuid", "'x:' .. uuid"},
	{"settle", "the record of one of many stays", "'HDEL', ledger, 'r:' .. uuid, 'x:'", "'HDEL', ledger, live ~= '' and 'x:' .. uuid or 'r:' .. uuid, 'x:'"},
	{"settle", "one of many stays", "if at and live ~= '' then redis.call('HSET', ledger, 'runs', live) end", ""},
	{"settle", "all runs go with one", "redis.call('HSET', ledger, 'runs', live)", "redis.call('HDEL', ledger, 'runs')"},
	{"settle", "the first run goes instead", "string.sub(live, 1, at - 1) .. string.sub(live, at + #uuid + 1)", "string.sub(live, #uuid + 2)"},
	{"settle", "the entry stays", "redis.call('ZREM', running, member)", ""},
	{"settle", "an overlap of a run that began later is counted", "and began and tonumber(began) <= tonumber(came) and", "and began and"},
	{"settle", "an overlap with its very beginning is none", "tonumber(began) <= tonumber(came) and", "tonumber(began) < tonumber(came) and"},
	{"settle", "an overlap of a run that was dead is counted", "and tonumber(came) <= lived then", "then"},
	{"settle", "an overlap with a run that ended is fired", "local lived = ran and now - (ARGV[11] or 0) or verb", "local lived = verb"},
	{"settle", "what came due after the end of a run overlaps with it", "now - (ARGV[11] or 0)", "now"},
	{"settle", "an overlap with a run that was reaped is fired", "or verb == 'reap' and tonumber(ARGV[9]) - (ttl or 0) or 0", "or 0"},
	{"settle", "a run lived until its lease ended", "tonumber(ARGV[9]) - (ttl or 0)", "tonumber(ARGV[9])"},
	{"settle", "an overlap with the last sign of life is none", "tonumber(came) <= lived then", "tonumber(came) < lived then"},
	{"settle", "an overlap with a run that never was is counted",
		"local ran = verb == 'finish' or verb == 'requeue'", "local ran = verb ~= 'reap'"},
	{"settle", "a tick that waits is an overlap", "if how == '-' and tick ~= spared and began", "if tick ~= spared and began"},
	{"settle", "an overlap is not told",
		"overlapped, overlap = overlapped .. tick .. ' ', math.max", "overlapped, overlap = overlapped, math.max"},
	{"settle", "an overlap is not settled", "'tick', newest, 'overlap', overlap)", "'tick', newest)"},
	{"settle", "an overlap can be claimed again", "      newest = math.max(newest, tonumber(tick))\n", ""},
	{"settle", "a tick is set free beside a run", "    elseif live ~= '' then\n", "    elseif false then\n"},
	{"settle", "a tick that stands behind another run is forgotten", "      kept = kept .. how .. tick .. '@' .. came .. ' '\n", ""},
	{"settle", "a tick set free is not due", "      enqueue(tick .. ' ' .. job .. ' catchup 1 0 0 ' .. uuid, 0)\n", ""},
	{"settle", "a tick set free is not told", "      freed = math.max(freed, tonumber(tick))\n", ""},
	{"settle", "a tick set free can be claimed from the table too", "      newest = math.max(newest, freed)\n", ""},
	{"settle", "a tick set free does not wait", "if freed > 0 then redis.call('HSET', ledger, 'handed', freed) end", ""},
	{"settle", "the tick is not handed on", "    enqueue(again, wait)\n    if string", "    if string"},
	{"settle", "a tick handed on does not wait", "if string.match(again, '^%d+') == known[2] then", "if false then"},
	{"settle", "an older tick is handed on instead",
		"if string.match(again, '^%d+') == known[2] then redis.call('HSET', ledger, 'handed', known[2]) end",
		"redis.call('HSET', ledger, 'handed', string.match(again, '^%d+'))"},
	{"settle", "a finished run is run again",
		"if verb ~= 'finish' and (again ~= '' or verb == 'reap') then", "if again ~= '' or verb == 'reap' then"},
	{"settle", "a replaced run is run again", "tonumber(token) <= (tonumber(known[1]) or 0) then\n    over", "false then\n    over"},
	{"settle", "a run that was not replaced is not run again",
		"tonumber(token) <= (tonumber(known[1]) or 0) then\n    over", "known[1] then\n    over"},
	{"settle", "what never began was replaced", "if verb ~= 'handover' and verb ~= 'abandon' and token", "if token"},
	{"settle", "a reaped run is not remembered", "if verb == 'reap' then redis.call('SET', memo, ", "if false then redis.call('SET', memo, "},
	{"settle", "a reaped run is remembered for ever", "' ' .. kept, 'PX', day) end", "' ' .. kept) end"},
	{"settle", "a run that is run again leaves evidence", "or '', 'taken '\n", "or '', 'dead '\n"},
	{"settle", "another's lock is deleted", "if redis.call('GET', lock) == uuid then", "if true then"},
	{"settle", "the lock lingers for its whole ttl", "redis.call('PEXPIRE', lock, ARGV[4])", ""},
	{"settle", "the lock stays", "redis.call('DEL', lock) else", "local kept = true else"},
	{"settle", "a tick that is handed on ends its job's last run", "if verb ~= 'handover' or over then note('done'", "if true then note('done'"},
	{"settle", "a tick that is given up is not the last run", "if verb ~= 'handover' or over then note('done'", "if verb ~= 'handover' then note('done'"},
	{"settle", "the last run is not known", "if verb ~= 'handover' or over then note('done', entry) end", ""},
	{"settle", "a cancelled run ends as its holder says", "if cut and string.find(", "if false and string.find("},
	{"settle", "a cancelled run that succeeded is none", "if cut and string.find(", "if cut or string.find("},
	{"settle", "a cancelled run has failed", ", ',\"failed\":true', '', 1)", ", '-', '', 0)"},
	{"settle", "a cancelled run is among the failures", "\n  failed = false\n", "\n"},
	{"settle", "the fate of a cancelled run is another's", "  if fate ~= '' then fate, h[7] = 'cancelled',", "  if false then fate, h[7] = 'cancelled',"},
	{"settle", "a cancelled run by hand has a fate", "  if fate ~= '' then fate, h[7] = 'cancelled',", "  if true then fate, h[7] = 'cancelled',"},
	{"settle", "nobody is told that the run was cancelled", "before, after, cut}", "before, after}"},
	{"settle", "a cancelled run is run again", "if cancelled then  ", "if false then  "},
	{"settle", "a cancelled run is handed on", "if cancelled then  ", "if cancelled and verb ~= 'handover' then  "},
	{"settle", "a cancelled claim is given back", "if cancelled then  ", "if cancelled and verb ~= 'abandon' then  "},
	{"settle", "a cancelled run leaves evidence", "if cancelled then  ", "if cancelled and again ~= '' then  "},
	{"settle", "the mark of the only run outlives it", "'x:' .. uuid, live == ''", "live ~= '' and 'x:' .. uuid or 'r:' .. uuid, live == ''"},
	{"settle", "the mark of one of many outlives it", "'x:' .. uuid, live == '' and 'runs' or 'x:' .. uuid", "live == '' and 'x:' .. uuid or 'r:' .. uuid, live == '' and 'runs' or 'r:' .. uuid"},
	{"settle", "all runs are cancelled with one", "h[4] or '', h[8]\n", "h[4] or '', string.find(table.concat(redis.call('HKEYS', ledger), ' '), 'x:')\n"},
	{"settle", "no history", "redis.pcall('XADD', runs, ", "redis.pcall('XADD', failures, "},
	{"settle", "what ends by itself has no fate", "if over and record then endTick", "if false then endTick"},
	{"settle", "what is run again has a fate", "if over and record then endTick", "if record then endTick"},
	{"settle", "what was replaced has no fate", "    over = true                                            -- it was", "    over = over -- it was"},
	{"settle", "a late finish that takes its repetition back has no fate", "      endTick(string.match(again, '^%d+'), entry)\n", ""},
	{"settle", "evidence that it never started gives it another fate",
		"then redis.call('HSET', ledger, 'counted', counted .. tick .. ' ') end", "then end"},
	{"settle", "that a tick had a fate is remembered for ever",
		"    note('counted', (string.gsub(counted, tick .. ' ', '')))\n", ""},
	{"settle", "what somebody asked for has a fate", "  if fate == '' then return end\n", ""},
	{"settle", "what runs once more has another fate", "  if once then  ", "  if false then  "},
	{"settle", "overlaps have no fate", "  if count > 0 then\n", "  if false then\n"},
	{"settle", "of several overlaps one is counted", "'fate:overlapped')) or 0) + count)", "'fate:overlapped')) or 0) + 1)"},
	{"settle", "an older tick tells how the job stands", "if tonumber(tick) < (tonumber(h[5]) or 0) then return end", ""},
	{"settle", "how the newest tick ended is not kept", "  note('scheduled', text)\n", ""},
	{"settle", "a success does not end a row of failures", "    after = 0\n    note('lastSuccess', once and math.max(tonumber(tick), tonumber(h[11]) or 0) or now)", "    note('lastSuccess', once and math.max(tonumber(tick), tonumber(h[11]) or 0) or now)"},
	{"settle", "which tick told how the job stands is not kept", "  note('ended', tick)\n", ""},
	{"settle", "the newest success goes back", "and tonumber(tick) > (tonumber(h[10]) or 0) then note('succeeded'", "then note('succeeded'"},
	{"settle", "what failed is the newest success", "if fate == 'succeeded' and tonumber(tick) >", "if tonumber(tick) >"},
	{"settle", "what had succeeded before a tick is kept for ever", "  if known > 0 then note('from', from) end\n", ""},
	{"settle", "how many have failed is not kept", "  note('streak', after)\n", ""},
	{"settle", "what neither succeeds nor fails tells how the job stands", "  else\n    return\n  end\n  note", "  end\n  note"},
	{"settle", "how a run ended is not written", "writeNotes()\nwake()", "wake()"},
	{"settle", "how a late finish ended its tick is not written", "      writeNotes()\n", ""},
	{"settle", "no failure follows another", "after = before + 1 end", "after = 1 end"},
	{"settle", "a row of failures begins with its last", "if before == 0 then note('failingSince'", "if true then note('failingSince'"},
	{"settle", "what failed once more lengthens the row", "if not once and (tick ~= h[5] or before == 0) then", "if tick ~= h[5] or before == 0 then"},
	{"settle", "who asks again is not told how the job stands", "if code ~= 'MOVED' and by == verb", "if false and by == verb"},
	{"settle", "who was taken over is told what the watcher was told", "and by == verb .. ' ' .. uuid then", "and by and string.find(by, uuid, 1, true) then"},
	{"settle", "a failure is not told to who asks again", "note('endedBy'", "local _ = failed or note('endedBy'"},
	{"settle", "a success is not told to who asks again", "note('endedBy'", "local _ = not failed or note('endedBy'"},
	{"settle", "what was cancelled before it started has no fate", "    if not cut and (verb == 'abandon' or verb == 'handover') and kind and", "    if false and kind and"},
	{"settle", "a run by hand that was cancelled has a fate", "not byHand and kind ~= 'timer' then\n      fate", "true then\n      fate"},
	{"settle", "no failures", "redis.pcall('XADD', failures, 'MAXLEN', '~', '10000', '*', 'run', entry) end", "end"},
	{"settle", "what succeeds is a failure", "if failed then redis", "if true then redis"},
	{"settle", "nobody is nudged", "wake()\nreturn {'OK', now, freed", "return {'OK', now, freed"},
	{"settle", "what is due later nudges", "nudge = nudge or tonumber(delay) == 0", "nudge = true"},
	{"settle", "what is handed on does not wait", "due, now + delay, m", "due, now, m"},
}

var otherMutants = []mutant{
	{"extend", "no compare", "if not record or owner and owner ~= uuid then return {'LOST', now} end", "record = record or '0 0 0'"},
	{"extend", "no compare of the lock", "if not record or owner and owner ~= uuid then", "if not record then"},
	{"extend", "no compare of the run",
		"if not record or owner and owner ~= uuid then return {'LOST', now} end",
		"if owner and owner ~= uuid then return {'LOST', now} end record = record or '0 9e18 0'"},
	{"extend", "nobody is told to end", "<= stop and 'REPLACED' or 'OK'", "<= stop and 'OK' or 'OK'"},
	{"extend", "the newest run is not told to end", "<= stop and 'REPLACED'", "< stop and 'REPLACED'"},
	{"extend", "who began later is told to end", "tonumber(string.match(record, '^%d+ (%d+)')) <= stop and", "stop > 0 and"},
	{"extend", "the entry is not renewed", "redis.call('ZADD', running, 'XX', now + ttl, uuid .. ' ' .. job)", ""},
	{"extend", "the lock is not renewed", "if owner then redis.call('PEXPIRE', lock, ttl)", "if owner then"},
	{"extend", "a cancelled run is not told", "if cancelled then return {'CANCELLED', now} end\n", ""},
	{"extend", "a cancelled run loses its lease", "local owner = redis.call('GET', lock)\n",
		"local owner = redis.call('GET', lock)\nif cancelled then return {'CANCELLED', now} end\n"},
	{"extend", "another run is told of a cancel", "'x:' .. uuid)", "'x:' .. string.sub(uuid, 1, 1))"},
	{"extend", "a missing lock is not restored", "else redis.call('SET', lock, uuid, 'PX', ttl) end", "end"},

	{"release", "no compare of the lock", "redis.call('GET', lock) ~= uuid or ", ""},
	{"release", "a live run's lock is deleted", " or redis.call('HGET', ledger, 'r:' .. uuid)", ""},

	{"register", "an old ledger is born again", "if not born then", "if true then"},
	{"register", "ticks before the birth are open", "'tick', tick, 'since', since, 'schedule'", "'tick', 0, 'since', since, 'schedule'"},
	{"register", "ticks claimed early are open", "or now + 1000", "or now"},
	{"register", "another schedule has missed ticks",
		"'since', now, 'schedule', fingerprint", "'schedule', fingerprint"},
	{"register", "what is uncounted is counted by another schedule", "  gaps = string.gsub(gaps, ", "  local _ = string.gsub(gaps, "},
	{"register", "single ticks are counted no more", "return to - from > 2 and '' or nil end", "return '' end"},
	{"register", "every registration changes the schedule",
		"(schedule ~= fingerprint and ARGV[8] ~= fingerprint or ARGV[8] == 'none') and knew ~= born then", "knew ~= born then"},
	{"register", "after a loss of data, who is behind in a rollout changes the schedule back", "fingerprint and ARGV[8] ~= fingerprint or", "fingerprint or"},
	{"register", "who is behind in a rollout changes the schedule back", ") and knew ~= born then", ") then"},
	{"register", "what every replica fired is fired again", " or ARGV[8] == 'none') and", ") and"},
	{"register", "what every replica fired is back as it was", "if schedule == 'none' or ARGV[8] == 'none' then", "if schedule == 'none' then"},
	{"register", "the ticks of a schedule that goes on begin anew", "elseif schedule == ARGV[8] and schedule ~= 'none' then", "elseif false then"},
	{"register", "after a loss of data, the ticks of a schedule that goes on begin anew", "schedule == ARGV[8] and schedule", "schedule == ARGV[8] and knew == born and schedule"},
	{"register", "what had left goes on as if it had not", "schedule == ARGV[8] and schedule ~= 'none' then", "schedule == ARGV[8] then"},
	{"register", "who has missed nothing says what is missing", "and known > 0 and tonumber(knew)", "and tonumber(knew)"},
	{"register", "fates live for ever", "redis.call('PEXPIRE', KEYS[3], ARGV[2])", ""},
	{"register", "old fates are kept", "redis.call('XTRIM', KEYS[3],", "redis.call('XTRIM', 'x' .. KEYS[3],"},
	{"register", "a fate is kept too short", "math.max(now - ARGV[2], 0)", "math.max(now - ARGV[2], 0) + 1"},
	{"register", "a ledger lives for ever", "redis.call('PEXPIRE', ledger, ARGV[2])", ""},
	{"register", "what is back fires what came meanwhile", "tick, back = math.max(tonumber(tick) or 0, now), schedule", "back = schedule"},
	{"register", "what is back fires what it had claimed early", "math.max(tonumber(tick) or 0, now), schedule", "now, schedule"},
	{"register", "who returns later has others drop what was asked for meanwhile", "schedule ~= fingerprint and now or back", "now"},
	{"register", "nobody is told that it is back", "'tick', tick, 'back', back)", "'tick', tick)"},
	{"register", "a changed schedule is back", "if schedule == 'none' or ARGV[8] == 'none' then", "if true then"},
	{"register", "at-least-once forgets where it stood", "since = ARGV[5] == '1' and", "since = false and"},
	{"register", "at-most-once goes on where it stood", "since = ARGV[5] == '1' and (stands or now)", "since = stands"},
	{"register", "at-most-once goes back to where it stood", "local stands = ARGV[5] == '1' and", "local stands = ARGV[5] and"},
	{"register", "what is owed can be claimed from the table too",
		"#ARGV > 8 and tonumber(string.match(ARGV[#ARGV], '^%d+')) or known", "known"},
	{"register", "an older ledger that comes back forgets claims", "elseif knew == born and", "elseif false and"},
	{"register", "a ledger of another birth goes on", "elseif knew == born and", "elseif knew ~= '0' and"},
	{"register", "at-least-once loses what an older ledger forgot", "knew == born and ARGV[5] ~= '1' and", "knew == born and"},
	{"register", "a ledger goes back to an older claim", "tonumber(ARGV[7]) > tonumber(tick)", "tonumber(ARGV[7]) ~= 0"},
	{"register", "what an older ledger forgot is told and not kept", "  tick = ARGV[7]\n  redis.call('HSET', ledger, 'tick', tick)\n", "  tick = ARGV[7]\n"},
	{"register", "who owes nothing forgets where it stood", "or known > 0 and known)", "or nil)"},
	{"register", "who knew nothing goes on from the beginning", "or known > 0 and known)", "or known)"},
	{"register", "a ledger of one who knew nothing stays as it was", "if stands and #ARGV > 8 and stands < tonumber(since) and", "if false and"},
	{"register", "a ledger goes on ahead", "#ARGV > 8 and stands < tonumber(since) and", "#ARGV > 8 and"},
	{"register", "a ledger goes back for one who owes nothing", "if stands and #ARGV > 8 and stands", "if stands and stands"},
	{"register", "a ledger of one who knew something goes back", "tonumber(since) and since == born and tick", "tonumber(since) and tick"},
	{"register", "a ledger goes back behind what was claimed", " and since == born and tick == since then", " and since == born then"},
	{"register", "a ledger goes back without what it has missed", "ledger, 'tick', tick, 'since', since)\n  end\n  local function",
		"ledger, 'tick', tick)\n  end\n  local function"},
	{"register", "who knew nothing says what is missing", "if knew ~= '0' and known > 0 and tonumber(knew)", "if known > 0 and tonumber(knew)"},
	{"register", "who knew this ledger says what is missing", "and tonumber(knew) ~= tonumber(born) and late == 0 then", "and late == 0 then"},
	{"register", "all who knew the ledger say what is missing", "and late == 0 then", "then"},
	{"register", "what was fired is owed", "if owed > known and owed <= since then", "if owed <= since then"},
	{"register", "what can be claimed from the table is due", "if owed > known and owed <= since then", "if owed > known then"},
	{"register", "what is owed is not due", "      redis.call('ZADD', due, now, ARGV[i])\n", ""},
	{"register", "what is owed was missed", "      upTo = owed\n", ""},
	{"register", "nothing was missed", "  missed(known, upTo)\n", ""},
	{"register", "a gap without a tick is to be counted", "if to - from > 1 then gaps", "if true then gaps"},
	{"register", "newer ticks that are settled were not missed", "      if upTo > since then missed(owed, upTo) end", "     "},
	{"register", "what lies between two that are owed was missed", "if upTo > since then missed", "if true then missed"},
	{"register", "the last tick of what was lost was not missed", "local upTo = since + 1", "local upTo = since"},
	{"register", "what came after the birth was missed",
		"  local since = math.min(tonumber(since), tonumber(born) +", "  local since = math.max(tonumber(since), tonumber(born) +"},
	{"register", "what came before a change was missed, though it was claimed",
		"  local since = math.min(tonumber(since), tonumber(born) + (ARGV[5] == '1' and 0 or 1000))\n", "  local since = tonumber(since)\n"},
	{"register", "a second more is owed under at-least-once", "(ARGV[5] == '1' and 0 or 1000)", "1000"},
	{"register", "a second less is settled under at-most-once", "(ARGV[5] == '1' and 0 or 1000)", "0"},
	{"register", "a gap that was there is forgotten",
		"gaps = gaps .. string.format('%d-%d ', from, to)", "gaps = string.format('%d-%d ', from, to)"},
	{"register", "a loss nudges nobody", "  redis.pcall('PUBLISH', ARGV[6], 'due')\n", ""},

	{"book", "asked again, another answer", "if redis.call('GET', memo) then return {'OK', now, 1} end", ""},
	{"book", "a request is not remembered", "redis.call('SET', memo, 'booked', 'PX', 86400000)", ""},
	{"book", "a request is remembered for ever", "'booked', 'PX', 86400000)", "'booked')"},
	{"book", "nothing is counted", "if read == '' or ", "if "},
	{"book", "what another has counted is counted", "or string.sub(gaps, 1, #read) ~= read then", "then"},
	{"book", "what was counted stays", "'gaps', string.sub(gaps, #read + 1), 'missed'", "'missed'"},
	{"book", "a fate is not counted", "or 0) + ARGV[i + 1])", "or 0) + 0)"},
	{"book", "no fate is kept", "  redis.call('XADD', fates,", "  redis.call('XADD', 'x' .. fates,"},
	{"book", "missed ticks are not in the history", "  if ARGV[i] == 'missed' then", "  if false then"},
	{"book", "all that was not fired is in the history", "  if ARGV[i] == 'missed' then", "  if true then"},
	{"book", "newer gaps go uncounted", "string.sub(gaps, #read + 1)", "''"},
	{"book", "what was missed yesterday was missed today", "'^' .. day .. ' (%d+)$'", "'^%d+ (%d+)$'"},
	{"book", "the day's count begins anew", "day .. ' ' .. today + ARGV[2]", "day .. ' ' .. ARGV[2]"},
	{"book", "what was missed last is not told", "    redis.call('HSET', ledger, 'lastMissed', ARGV[i + 2])\n", ""},
	{"book", "the count begins anew", "(tonumber(h[2]) or 0) + ARGV[2]", "ARGV[2]"},

	{"claimed", "the newest claimed tick is not claimed", "tonumber(tick) > (", "tonumber(tick) >= ("},
	{"claimed", "all ticks are claimed", "    answers[i + 1] = 0\n", "    answers[i + 1] = h\n"},
	{"claimed", "the answer is of the first tick", "ARGV[i] or", "ARGV[1] or"},
	{"claimed", "further ledgers have no tick", "or ARGV[#ARGV]", "or 0"},
	{"claimed", "an older tick is the newest", "h[1] == tick and h[6]", "h[6]"},
	{"claimed", "nobody has claimed", "h[1] == tick and h[6] and", "h[1] == tick and"},
	{"claimed", "that there was an overlap does not count", "h[2] or h[3]", "h[3]"},
	{"claimed", "that there was a pause does not count", "h[2] or h[3]", "h[2]"},
	{"claimed", "that it was handed on does not count", "h[3] or h[4]", "h[3]"},
	{"claimed", "that there are gaps does not count", " or (h[7] or '') ~= ''", ""},
	{"claimed", "that a tick waits does not count", " or h[8]\n", "\n"},
	{"claimed", "the ledger is the first one", "'HMGET', ledger", "'HMGET', KEYS[1]"},
	{"claimed", "the time is not Redis'", "t[1] * 1000", "t[1] * 1000 + 1"},
	{"claimed", "nobody is told what overlapped", "'overlap'", "'none'"},
	{"claimed", "nobody is told of a pause", "'pausedTo'", "'none'"},
	{"claimed", "a tick that was handed on was fired", "'handed'", "'none'"},
	{"claimed", "the ledger has no age", "'born'", "'none'"},
	{"claimed", "nobody is told who claimed", "'by'", "'none'"},
	{"claimed", "nobody is told of gaps", "'gaps'", "'none'"},
	{"claimed", "a tick that stands behind a run was fired", "'behind'", "'none'"},
	{"drop", "a member stays due", "redis.call('ZREM', due, member)", "redis.call('ZSCORE', due, member) and 1 or 0"},
	{"drop", "what is dropped still waits", "if there == 1 and tick == h[2] then redis.call('HDEL', ledger, 'handed') end", ""},
	{"drop", "what another has dropped is missed", "elseif there == 1 and fate ~= '' then", "elseif fate ~= '' then"},
	{"drop", "what has run is missed", "elseif there == 1 and fate ~= '' then", "elseif there == 1 then"},
	{"drop", "the gap has no tick", "tick - 1, tick + 1,", "tick, tick + 1,"},
	{"drop", "what was interrupted was missed", "fate == 'missed' and '' or ':' .. fate", "''"},
	{"drop", "what had a fate gets another", "if there == 1 and string.find(counted, tick .. ' ', 1, true) then", "if false then"},
	{"drop", "that a tick had a fate is remembered for ever", "  redis.call('HSET', ledger, 'counted', (string.gsub(counted, tick .. ' ', '')))\n", ""},
	{"drop", "the gaps before are forgotten", "gaps = gaps .. string.format", "gaps = string.format"},
	{"drop", "the gap is not kept", "  redis.call('HSET', ledger, 'gaps', gaps)\nend", "end"},

	{"ask", "a job without a ledger is triggered", "if not h[1] then return {'UNKNOWN', now} end", ""},
	{"ask", "asked again, another tick", "if what == asked or what == '' then return {'OK', now, tonumber(before)} end -- asked again, the same answer, for a day\nif before then return {'OTHER', now} end", ""},
	{"ask", "a request of an older version is another one", " or what == ''", ""},
	{"ask", "another request is the same", "if what == asked or what == '' then return", "if before then return"},
	{"ask", "a request for another tick is the same", "' ' .. (ARGV[3] or '') .. ARGV[1]", "' ' .. ARGV[1]"},
	{"ask", "another request is carried out", "if before then return {'OTHER', now} end", ""},
	{"ask", "a request is not remembered", "redis.call('SET', memo, string.format('%d', answer) .. asked, 'PX', 86400000)", ""},
	{"ask", "a request is remembered for ever", "asked, 'PX', 86400000)", "asked)"},
	{"ask", "a backfill is not due", "answer = answer + redis.call('ZADD', due, now, ARGV[i] .. ARGV[1])", "answer = answer + 1"},
	{"ask", "a backfill is due later", "redis.call('ZADD', due, now, ARGV[i]", "redis.call('ZADD', due, now + 1, ARGV[i]"},
	{"ask", "a backfill is not counted", "answer = answer + redis.call('ZADD'", "answer = redis.call('ZADD'"},
	{"ask", "two triggers have a tick", "math.max(now, (tonumber(h[2]) or 0) + 1)", "now"},
	{"ask", "a trigger's tick is old", "math.max(now, (tonumber(h[2]) or 0) + 1)", "(tonumber(h[2]) or 0) + 1"},
	{"ask", "a trigger takes the tick of a schedule", "if answer % 10 == 0 then answer = answer + 1 end", ""},
	{"ask", "a trigger waits for Redis' clock", "redis.call('ZADD', due, 0, ", "redis.call('ZADD', due, now, "},
	{"ask", "the last trigger is not known", "  redis.call('HSET', ledger, 'manual', string.format('%d', answer))\n", ""},
	{"ask", "nobody is told", "redis.pcall('PUBLISH', ARGV[2], 'due')", ""},
	{"ask", "all are told of each of many", "if waiting < 20 then", "if true then"},
	{"ask", "nobody is told of the second", "if waiting < 20 then", "if waiting < 1 then"},
	{"ask", "there is no end of a job's triggers", "if waiting >= 100 then return {'FULL', now, 100} end", ""},
	{"ask", "a trigger too few", "if waiting >= 100", "if waiting >= 99"},
	{"ask", "others' triggers are the job's", "if string.find(m, ours, 1, true) then", "if true then"},
	{"ask", "there is no end of triggers", "if #all >= 1000 then return {'FULL', now, 1000} end", ""},
	{"ask", "a trigger of all jobs too few", "if #all >= 1000", "if #all >= 999"},
	{"ask", "what was handed on is a trigger that waits", "'ZRANGE', due, 0, 0, 'BYSCORE'", "'ZRANGE', due, 0, 1, 'BYSCORE'"},
	{"ask", "there is no end of a backfill", "then return {'FULL', now, 5000} end", "then local full = true end"},
	{"ask", "a backfill has no size", "5002 - #ARGV", "5000"},
	{"ask", "a tick of a backfill too few", "5002 - #ARGV", "5001 - #ARGV"},
	{"ask", "an act is a tick", "local act = acts and table.remove(ARGV)", "local act = acts and ARGV[#ARGV]"},
	{"ask", "data are an act", "local data = KEYS[5] and table.remove(ARGV)", "local data = KEYS[5] and ARGV[#ARGV]"},
	{"ask", "data are not kept", "if data then redis.call('SET', KEYS[5], data, 'PX', 86400000) end", ""},
	{"ask", "data are kept for ever", "data, 'PX', 86400000)", "data)"},
	{"ask", "who asks again brings other data", "if what == asked or what == '' then return", "if before and data then redis.call('SET', KEYS[5], data, 'PX', 86400000) end\nif what == asked or what == '' then return"},
	{"ask", "data are kept of what is refused", "local answer, waiting = 0, 0", "if data then redis.call('SET', KEYS[5], data, 'PX', 86400000) end\nlocal answer, waiting = 0, 0"},
	{"ask", "triggers with data count by themselves", "'^ %S+ %l+')", "'^ %S+ %S+ ')"},
	{"ask", "an act is not kept", "if act then redis.pcall('XADD'", "if false then redis.pcall('XADD'"},
	{"ask", "an act does not tell what it made", ", 'act', act, 'made', string.format('%d', answer))", ", 'act', act, 'made', 0)"},
	{"ask", "there is no end of acts", "acts, 'MAXLEN', '~', '1000', '*'", "acts, '*'"},
	{"ask", "a request is not worth more than its act", "if act then redis.pcall('XADD'", "if act then redis.call('XADD'"},

	{"cancel", "a job without a ledger is known", "if not redis.call('HGET', ledger, 'born') then return {'UNKNOWN', now} end\n", ""},
	{"cancel", "a copy that comes late is answered anew", "if before then return {'OK', now, before} end", ""},
	{"cancel", "a request is not remembered", "redis.call('SET', memo, answer, 'PX', 86400000)", ""},
	{"cancel", "a request is remembered for ever", "redis.call('SET', memo, answer, 'PX', 86400000)", "redis.call('SET', memo, answer)"},
	{"cancel", "what is over is cancelled", "if redis.call('HGET', ledger, 'r:' .. ARGV[i]) then", "do"},
	{"cancel", "nothing is cancelled", "redis.call('HSET', ledger, 'x:' .. ARGV[i], now)", ""},
	{"cancel", "only the first run is cancelled", "for i = 3, due and 0 or #ARGV do", "for i = 3, 3 do"},
	{"cancel", "a copy that comes late drops what was asked for since", "if due and now > tonumber(ARGV[3]) then", "if false then"},
	{"cancel", "what the schedule has waiting is dropped", "whose == job and (kind == 'manual' or kind == 'backfill')", "whose == job"},
	{"cancel", "what waits of other jobs is dropped", "if whose == job and (kind", "if (kind"},
	{"cancel", "a trigger is not dropped", "(kind == 'manual' or kind == 'backfill')", "kind == 'backfill'"},
	{"cancel", "a backfill is not dropped", "(kind == 'manual' or kind == 'backfill')", "kind == 'manual'"},
	{"cancel", "nothing is dropped", "    redis.call('ZREM', due, m)\n", ""},
	{"cancel", "what is dropped seems to wait", "if redis.call('HGET', ledger, 'handed') == tick then", "if false then"},
	{"cancel", "what is dropped is not in the history", "    redis.pcall('XADD', KEYS[5],", "    local _ = ({})[1] and redis.pcall('XADD', KEYS[5],"},
	{"cancel", "what was dropped is not said", "    table.insert(lived, tick)\n", ""},
	{"cancel", "an act is not told how many were dropped", "due and #lived or answer", "answer"},
	{"cancel", "nobody is told", "redis.pcall('PUBLISH', ARGV[1], 'stop ' .. job)", ""},
	{"cancel", "who had an effect is not said", "table.insert(lived, ARGV[i])", "table.insert(lived, 'x')"},
	{"cancel", "an act is not kept", "if act then redis.pcall('XADD'", "if false then redis.pcall('XADD'"},
	{"cancel", "there is no end of acts", "acts, 'MAXLEN', '~', '1000', '*'", "acts, '*'"},
	{"cancel", "a request is not worth more than its act", "if act then redis.pcall('XADD'", "if act then redis.call('XADD'"},
	{"cancel", "full memory keeps a run going", "    redis.call('HDEL', ledger, 'x:' .. ARGV[i]) ", "    local _ = nil "},

	{"pause", "a job without a ledger is paused", "if not h[1] then return {'UNKNOWN', now} end", ""},
	{"pause", "a copy that comes late undoes what was done after it", "if before then return {'OK', now, tonumber(before)} end", ""},
	{"pause", "a request is not remembered", "redis.call('SET', memo, answer, 'PX', 86400000)", ""},
	{"pause", "a request is remembered for ever", "redis.call('SET', memo, answer, 'PX', 86400000)", "redis.call('SET', memo, answer)"},
	{"pause", "a pause that is over is one", "if to ~= 0 and to <= at then return {'PAST', now} end", ""},
	{"pause", "a pause until it is resumed is over", "if to ~= 0 and to <= at then", "if to <= at then"},
	{"pause", "the ticks of a pause that has ended are missed", "    finish(ends - 1)\n", ""},
	{"pause", "a pause that has ended settles ticks that the replicas have not come to", "ends <= at then", "ends <= now then"},
	{"pause", "a pause is over by a clock that the replicas do not follow", "to <= at then", "to <= now then"},
	{"pause", "a pause that has ended settles the ticks after it", "    finish(ends - 1)\n", "    finish(at)\n"},
	{"pause", "a pause goes on that has ended", "    began = at\n", ""},
	{"pause", "a job stands still since the second pause",
		"if ends ~= 0 and ends <= at then                        -- the one before",
		"if true then                        -- the one before"},
	{"pause", "a job is not paused", "  redis.call('HSET', ledger, field, string.format('%d %d ', to, began) .. ARGV[6])\n", ""},
	{"pause", "the pause of all jobs replaces the job's own", "own and 'paused' or 'pausedAll',", "'paused',"},
	{"pause", "a job's own pause replaces that of all jobs", "own and 'paused' or 'pausedAll',", "'pausedAll',"},
	{"pause", "the pause of all jobs is its own other", "own and 'pausedAll' or 'paused'", "'pausedAll'"},
	{"pause", "a job's own pause is its own other", "own and 'pausedAll' or 'paused'", "'paused'"},
	{"pause", "the ticks of the other pause are missed", "if otherEnds then table.insert(pauses", "if false then table.insert(pauses"},
	{"pause", "the other pause ends with this one", "otherEnds ~= '0' and otherEnds - 1 or over", "over"},
	{"pause", "the other pause is over at once", "otherEnds ~= '0' and otherEnds - 1 or over", "otherEnds - 1"},
	{"pause", "the tick at the other pause's end is one of it", "otherEnds - 1 or over", "otherEnds or over"},
	{"pause", "the ticks between two pauses are not missed", "  table.sort(pauses, function(a, b) return a[1] < b[1] end)\n", ""},
	{"pause", "the ticks in the first of two pauses are missed", "    from = math.max(from, pause[2])\n", ""},
	{"pause", "the replicas' time does not count", "at = at ~= 0 and at or now", "at = now"},
	{"pause", "a pause lasts beyond its end", "finish(ends ~= 0 and math.min(at, ends - 1) or at)", "finish(at)"},
	{"pause", "the ticks of a pause are missed", "  finish(ends ~= 0 and math.min(at, ends - 1) or at) ", "  "},
	{"pause", "a resumed job is paused", "  redis.call('HDEL', ledger, field)\n", ""},
	{"pause", "the other pause is lifted too", "redis.call('HDEL', ledger, field)", "redis.call('HDEL', ledger, field, other)"},
	{"pause", "what was kept back is kept back", "redis.pcall('PUBLISH', ARGV[1], 'due ' .. ARGV[2])", ""},
	{"pause", "what is not paused is resumed", "else\n  answer = 0\nend", "end"},
	{"pause", "the ticks before a pause are not missed", "if to - from > 1 then gaps", "if false then gaps"},
	{"pause", "a pause began after its end", "local to = math.min(pause[1], over)", "local to = pause[1]"},
	{"pause", "the ticks of a pause have no fate", "if last - first > 0 then", "if false then"},
	{"pause", "a claimed tick was paused too", "local first, last = math.max(from, to - 1),", "local first, last = to - 1,"},
	{"pause", "the first instant of a pause is not of it", "math.max(from, to - 1), math.min", "math.max(from, to), math.min"},
	{"pause", "the last instant of a pause is not of it", "first, last + 1)", "first, last)"},
	{"pause", "a pause lasts beyond its end", "math.min(pause[2], over)", "pause[2]"},
	{"pause", "the gaps before are forgotten", "gaps = gaps .. string.format('%d-%d ', from, to)", "gaps = string.format('%d-%d ', from, to)"},
	{"pause", "claimed ticks were missed before a pause",
		"local from = math.max(tick, since, pausedTo)", "local from = math.max(since, pausedTo)"},
	{"pause", "ticks before a change were missed before a pause",
		"local from = math.max(tick, since, pausedTo)", "local from = math.max(tick, pausedTo)"},
	{"pause", "refused ticks were missed before a pause", "from = math.max(from, tonumber(refused)) end", "end"},
	{"pause", "a pause sets the tick back", "string.format('%d', math.max(tick, over)), 'pausedTo'", "string.format('%d', over), 'pausedTo'"},
	{"pause", "a pause ends before the one before it",
		"'pausedTo', string.format('%d', math.max(pausedTo, over))", "'pausedTo', string.format('%d', over)"},
	{"pause", "ticks of a pause can be claimed", "'tick', string.format('%d', math.max(tick, over)), 'pausedTo'", "'pausedTo'"},
	{"pause", "an act is not kept", "if act and answer == 1 then", "if false then"},
	{"pause", "what had no effect is an act", "if act and answer == 1 then", "if act then"},
	{"pause", "there is no end of acts", "acts, 'MAXLEN', '~', '1000', '*'", "acts, '*'"},
	{"pause", "a request is not worth more than its act", "redis.pcall('XADD'", "redis.call('XADD'"},
	{"pause", "nobody knows when the pause ended", "'pausedTo', string.format('%d', math.max(pausedTo, over)), ", ""},
}

func (s *walkScripts) named(name string) **rds.Script {
	return map[string]**rds.Script{"acquire": &s.acquire, "claimed": &s.claimed, "extend": &s.extend, "settle": &s.settle, "release": &s.release, "register": &s.register,
		"book": &s.book, "drop": &s.drop, "ask": &s.ask, "pause": &s.pause, "cancel": &s.cancel}[name]
}

func TestEveryMutantIsNoticed(t *testing.T) {
	trial := func(t *testing.T, rdb redis.UniversalClient) func(walkScripts) string {
		return func(s walkScripts) string {
			load(t, rdb, s)
			return noticed(rdb, s)
		}
	}
	everyMutantIsNoticed(t, mutants, realScripts, (*walkScripts).named, trial)
}

// everyMutantIsNoticed tries sets of scripts with one mutant each, after the real ones, which nothing must notice: half of them on
// one Redis, half on another. Both are real: on miniredis, the probes' subscriber does not read, and a publish waits for it.
func everyMutantIsNoticed[S any](t *testing.T, mutants []mutant, scripts func() S, named func(*S, string) **rds.Script,
	trial func(*testing.T, redis.UniversalClient) (noticed func(S) string)) {
	run := results.Of(t, "go test ./lock -run "+t.Name())
	var tried, unnoticed atomic.Int64
	t.Cleanup(func() {
		run.Add(int(tried.Load()), "mutants")
		run.Add(int(unnoticed.Load()), "not noticed")
	})
	for half := range 2 {
		t.Run(fmt.Sprint("half ", half+1), func(t *testing.T) {
			t.Parallel()
			noticed := trial(t, realClient(t))
			if by := noticed(scripts()); by != "" {
				t.Fatalf("the scripts themselves: %s", by)
			}
			of, missed := halfIsNoticed(t, mutants, half, scripts, named, noticed)
			tried.Add(int64(of))
			unnoticed.Add(int64(missed))
		})
	}
}

func halfIsNoticed[S any](t *testing.T, mutants []mutant, half int, scripts func() S, named func(*S, string) **rds.Script,
	noticed func(S) string) (tried, unnoticed int) {
	for i, m := range mutants {
		if i%2 != half || !mutantNamed.MatchString(m.script+": "+m.what) {
			continue
		}
		tried++
		broken := scripts()
		target := named(&broken, m.script)
		source := strings.Replace((*target).Source, m.text, m.instead, 1)
		if source == (*target).Source {
			t.Errorf("%s: %s: its text is not in the script any more", m.script, m.what)
			continue
		}
		*target = rds.NewScript(source, rds.Unconfirmed)
		by := noticed(broken)
		if by == "" {
			t.Errorf("%s: %s: not noticed", m.script, m.what)
			unnoticed++
		}
		t.Logf("%s: %s: %s", m.script, m.what, by)
	}
	t.Logf("%d mutants, %d not noticed", tried, unnoticed)
	return tried, unnoticed
}

// replayClient is a real Redis where there is one, since it is faster.
func replayClient(t *testing.T) redis.UniversalClient {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return miniClient(t)
	}
	return realClient(t)
}

// noticed says what noticed the mutant: a probe or a walk; "" if nothing did.
func noticed(rdb redis.UniversalClient, scripts walkScripts) string {
	if err := probe(rdb, scripts); err != nil {
		return "probe: " + err.Error()
	}
	for seed := uint64(1); seed <= 700; seed++ {
		if _, err := play(rdb, scripts, seed); err != nil {
			return fmt.Sprintf("walk %d: %v", seed, err)
		}
	}
	return ""
}
