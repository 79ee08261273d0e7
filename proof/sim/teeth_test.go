package sim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/results"
)

// A tooth is a fault put into the sources on purpose, which the seeds have to find. One test binary has all faults of
// Go, and its environment says which one it plays: BROKEN in an edit is true then, and PICK(broken, right) is its first
// value.
type tooth struct {
	what    string
	promise string // the one that it breaks
	class   string // whose seeds are played; "" = all
	edits   []edit // of files of this module
}

var teeth = []tooth{
	{"drop the compare", "6: accounts", "", []edit{{"lock/settle.lua", "elseif not record then", "elseif false then"}}},
	{"leave open what was dropped", "6: accounts", "", []edit{{"lock/drop.lua",
		"  if at then redis.call('HSET', ledger, 'open',", "  if false then redis.call('HSET', ledger, 'open',"}}},
	{"have timers that are taken over among the open ticks", "6: accounts", "timers", []edit{{"lock/settle.lua",
		"if again ~= '' and not timer then", "if again ~= '' then"}}},
	{"keep what a timer was to do", "6: accounts", "timers", []edit{{"lock/settle.lua",
		"kept, how = over and timer", "kept, how = again == '' and timer"}}},
	{"end a series", "2: never lost", "", []edit{{"sidecar/service/spring.lua",
		"redis.call('ZADD', due, following,", "local _ = now % 5 == 0 or redis.call('ZADD', due, following,"}}},
	{"move a series on twice", "1: never twice", "", []edit{{"sidecar/service/spring.lua", "redis.call('ZREM', due, member) == 1", "redis.call('ZREM', due, member)"},
		{"sidecar/service/spring.lua", "at and member == at .. ' ' .. job .. ' series 1 0 0 ' .. copy", "at"},
		{"sidecar/service/spring.lua", "tonumber(tick) <= tonumber(newest)", "false"},
		{"sidecar/service/spring.lua", "elseif string.find(kept[3 * i + n] or '', '^%d') then", "elseif false then"}}},
	{"let runs of a series overlap", "overlap", "", []edit{{"sidecar/service/spring.lua",
		"code == 'DUE' and 3 or 0 do", "code == 'DUE' and 2 or 0 do"}}},
	{"replace a time of a series that runs", "overlap", "", []edit{{"sidecar/service/spring.lua",
		"if since then", "if was then since = since or tick"}}},
	{"lose a time that has come", "2: never lost", "", []edit{{"sidecar/service/timer.lua",
		"tonumber(setAt) <= now then at = setAt end", "false then at = setAt end"}}},
	{"drop the claim", "1: never twice", "", []edit{
		{"lock/acquire.lua", "local moved = member == '' and ARGV[3] or h[2] or 0", "local moved = h[2] or 0"},
	}},
	{"start one run more than the limit", "3: a limit", "limits", []edit{{"lock/acquire.lua", ">= limit end", "> limit end"}}},
	{"stretch trust from the reply", "3: trust", "", []edit{
		{"lock/lease.go", "l.trust.Store(int64(sent + c.TTL - Margin))", "if BROKEN { sent = s.redis.Boottime() }\nl.trust.Store(int64(sent + c.TTL - Margin))"},
		{"lock/acquire.go", "l.trust.Store(int64(sent + c.TTL - Margin))",
			"if BROKEN { sent = q.store.redis.Boottime() }\nl.trust.Store(int64(sent + c.TTL - Margin))"},
	}},
	{"forget the due entry on crash", "2: never lost", "", []edit{
		{"lock/settle.lua", "if verb ~= 'finish' and (again ~= '' or verb == 'reap') then",
			"if verb ~= 'finish' and verb ~= 'reap' and again ~= '' then"},
	}},
	{"forget what waited behind a crash", "2: never lost", "", []edit{
		{"lock/settle.lua", "nudge = redis.call('ZADD', due, now, t ..", "nudge = verb ~= 'reap' and redis.call('ZADD', due, now, t .."},
	}},
	{"extend without compare", "4: a foreign lock", "", []edit{
		{"lock/extend.lua", "if not h[1] or owner and owner ~= uuid then return {'LOST', now} end", ""},
	}},
	{"DEL without compare", "4: a foreign lock", "", []edit{
		{"lock/release.lua", "if lock == ARGV[i] and not redis.pcall('HGET', KEYS[n + i], 'r:' .. lock) then", "if true then"},
	}},
	{"keep the grace of a command whose lock is lost meanwhile", "3: gone", ignoresTheEnd, []edit{
		{"sidecar/execute/command/command.go", "case r.Lasts != nil && !r.Lasts(0):", "case !BROKEN && r.Lasts != nil && !r.Lasts(0):"},
	}},
	{"start without trust", "3: trust", "stands still as it starts", []edit{{"sidecar/attempt.go", "if !h.Trusted() {", "if !BROKEN && !h.Trusted() {"}}},
	{"register nothing anew", "2: never lost", "", []edit{
		{"sidecar/register.go", "if lost || came {", "if !BROKEN && (lost || came) {"},
	}},
	{"count no skip", "5: never silently", "", []edit{{"sidecar/record.go", "r.metrics.tally(w.spec.label).skipped(because)",
		"if !BROKEN { r.metrics.tally(w.spec.label).skipped(because) }"}}},
	{"tell no refusal", "5: never silently", "", []edit{
		{"sidecar/acquire.go", "until: a.Until, holder: ", "until: PICK(time.Unix(1, 0), a.Until), holder: "}, untold,
	}},
	{"tell a handover twice", "5: never silently", "", []edit{
		{"sidecar/fire.go", "f.settler.handover(w, h, &end) {\n\t\treturn",
			"f.settler.handover(w, h, &end) {\n\t\tif BROKEN { f.record.skipped(w, skip{reason: startFailed}) }\n\t\treturn"},
	}},
	{"sleep through a tick", "5: never silently", "", []edit{
		{"sidecar/sidecar.go", "			wakes = append(wakes, &w)\n", "			if !BROKEN || w.tick.Unix()%20 != 0 {\n\t\t\t\twakes = append(wakes, &w)\n\t\t\t}\n"},
	}},
	{"claim in a pause", "pause", "", []edit{
		{"lock/acquire.lua", "if kept then return answer(", "if false then return answer("},
	}},
	{"stay paused", "2: never lost", "", []edit{
		{"lock/acquire.lua", "if ends and ends ~= 0 and math.max(kind and now or 0, tick) >= ends then", "if false then"},
	}},
	{"take an older claim for this tick's", "2: never lost", "", []edit{
		{"sidecar/yield.go", "h == nil || !h.Tick.Equal(w.tick)", "h == nil || !BROKEN && !h.Tick.Equal(w.tick)"},
	}},
	{"leave a lease to an app that is not ready", "lease: not ready", "leases", []edit{
		{"sidecar/asker.go", "d > 0 && a.idle()", "!BROKEN && d > 0 && a.idle()"},
	}},
	{"nudge nobody", "prompt", "", []edit{{"lock/settle.lua", "if nudge then redis.pcall('PUBLISH'", "if false then redis.pcall('PUBLISH'"}}},
	{"stop nobody", "prompt", "", []edit{
		{"lock/acquire.lua", "redis.pcall('PUBLISH', KEYS[5], 'stop ' .. job)", ""},
	}},
	{"forget at a reload that a wake asks", "table", "edits", []edit{
		{"sidecar/job.go", "\t\tnext.era = before.era\n", "\t\tnext.era, j.ticks.asking = before.era, PICK(0, j.ticks.asking)\n"},
		{"sidecar/ticks.go", " && !s.due(t.taken).After(at)", " && (BROKEN || !s.due(t.taken).After(at))"},
	}},
	{"ask on for what has left the table", "table", "calendars", []edit{
		{"sidecar/job.go", "\t\tdefer before.end()\n", "\t\tif !BROKEN { defer before.end() }\n"},
	}},
	{"go on with what is known of other ticks", "2: never lost", "rollout", []edit{
		{"sidecar/job.go", "case next.sameTicks(before), ", "case BROKEN || next.sameTicks(before), "},
		{"sidecar/job.go", "return !next.sameTicks(before)\n", "return !BROKEN && !next.sameTicks(before)\n"},
	}},
	{"believe what no replica has confirmed", "confirmed", "confirmed failover", []edit{
		{"internal/rds/script.go", "sc.confirm == AllAnswers || parts[0] == \"OK\"", "PICK(parts[0] == \"WON\", sc.confirm == AllAnswers || parts[0] == \"OK\")"},
	}},
	{"believe the end of a run that no replica has confirmed", "confirmed", "confirmed failover", []edit{
		{"lock/scripts.go", "rds.Load(scripts, \"settle.lua\", rds.AllAnswers)", "rds.Load(scripts, \"settle.lua\", PICK(rds.Unconfirmed, rds.AllAnswers))"},
	}},
	{"believe a pause that no replica has confirmed", "confirmed", "confirmed failover", []edit{
		{"sidecar/service/scripts.go", "rds.Load(scripts, \"pause.lua\", rds.WhatIsDone)", "rds.Load(scripts, \"pause.lua\", PICK(rds.Unconfirmed, rds.WhatIsDone))"},
	}},
	{"pass over every seventh second", "2: never lost", "Redis stalls", []edit{
		{"sidecar/acquire.go", "	ctx, stop := c.whileWorth(w)\n	defer stop()\n	asked",
			"	if BROKEN && w.member == \"\" && w.tick.Unix()%7 == 0 {\n		return nil, skip{reason: superseded}\n	}\n" +
				"	ctx, stop := c.whileWorth(w)\n	defer stop()\n	asked"},
	}},
	{"say nothing of what Redis' clock never reached", "5: never silently", "far clock", []edit{
		{"sidecar/acquire.go", "w.expired(c.clock):\n			return skip{reason: superseded}",
			"w.expired(c.clock):\n			return skip{reason: superseded, until: PICK(time.Unix(1, 0), time.Time{})}"}, untold,
	}},
	{"hand on by the replica's own clock", "2: ", clocksApart, []edit{
		{"sidecar/settle.go", "w.expiresWithin(wait, s.clock)", "(w.expiresWithin(wait, s.clock) || BROKEN && !w.worthUntil().IsZero() && s.clock.Now().After(w.worthUntil()))"},
	}},
	{"drop what is due by the replica's own clock", "2: ", clocksApart, []edit{
		{"sidecar/due.go", "w.expired(t.clock)", "(w.expired(t.clock) || BROKEN && !w.worthUntil().IsZero() && t.clock.Now().After(w.worthUntil()))"},
	}},
	{"count as missed what no replica could start", "given up", "", []edit{
		{"sidecar/due.go", "refused := len(", "refused := !BROKEN && len("},
	}},
	{"wait by the replica's own clock", "2: ", clocksApart, []edit{
		{"sidecar/acquire.go", "until.Sub(w.spec.now(c.clock))", "until.Sub(PICK(c.clock.Now(), w.spec.now(c.clock)))"},
	}},
	{"start by the replica's own clock", "1: never early", clocksApart, []edit{
		{"sidecar/attempt.go", "beat.Sleep(ctx, early())", "beat.Sleep(ctx, PICK(0, early()))"},
	}},
	{"count nothing from before a replica came", "fates", "", []edit{
		{"lock/register.lua", "elseif (schedule ~= fingerprint and ARGV[8] ~= fingerprint or ARGV[8] == 'none') and knew ~= born then", "elseif schedule ~= fingerprint and knew ~= born or knew == '0' then"},
	}},
	{"let a late copy of a registration begin ticks anew", "table", "rollout", []edit{
		{"lock/register.lua", "if now > tonumber(ARGV[2]) then return {now, 'STALE'} end", ""},
	}},
	{"change the schedule of a rollout back", "table", "rollout", []edit{
		{"lock/register.lua", "(schedule ~= fingerprint and ARGV[8] ~= fingerprint or ARGV[8] == 'none') and knew ~= born then", "schedule ~= fingerprint then"},
	}},
	{"count by a schedule what came before it", "fates", changesUncounted, []edit{
		{"lock/register.lua", "  gaps = string.gsub(gaps, ", "  local _ = string.gsub(gaps, "},
	}},
	{"go on whatever has changed", "fates", changesUncounted, []edit{
		{"sidecar/spec.go", "time.Time.Equal) && (len", "func(a, b time.Time) bool { return BROKEN || a.Equal(b) }) && (len"},
	}},
	{"begin anew for a day that is far away", "fates", changesFarAway, []edit{
		{"sidecar/spec.go", "	return sp.usesClaims() && before.usesClaims()", "	return !BROKEN && sp.usesClaims() && before.usesClaims()"},
	}},
	{"forget who refused a tick", "2: asked once", "apps refuse", []edit{
		{"lock/settle.go", "append(slices.Clone(d.Refused), l.claim.Replica)", "PICK(slices.Clone(d.Refused)[:0], append(slices.Clone(d.Refused), l.claim.Replica))"},
	}},
	{"look at nothing without a place", "3: replaced", "slots", []edit{
		{"sidecar/wake.go", "return !w.asked && ", "return !BROKEN && !w.asked && "},
	}},
	{"leave what is due out of the line", "slots", "contended slots", []edit{
		{"sidecar/due.go", "at.seen, t.line[w.spec.Name] = true, at", "at.seen, t.line[w.spec.Name] = !BROKEN, at"},
	}},
	{"give slots as they are asked for", "slots", "contended slots", []edit{
		{"sidecar/slots.go", "case p.spec.Priority != o.spec.Priority:", "case !BROKEN && p.spec.Priority != o.spec.Priority:"},
	}},
	{"count what came due before a new job's app was ready", "fates", "readiness", []edit{
		{"sidecar/acquire.go", "unready.After(q.Known) && before", "unready.After(q.Known) && !BROKEN && before"},
	}},
	{"take it that a limit refuses nothing", "3: skipped for good", "slots", []edit{
		{"sidecar/wake.go", "!w.spec.hasRoom(math.MaxInt)", "!w.spec.hasRoom(math.MaxInt) && !(BROKEN && w.spec.Concurrency > 0)"},
	}},
	{"claim until the window ends", "1: superseded", "Redis stalls", []edit{{"sidecar/acquire.go", "q.Until = c.clock.onRedis(until)",
		"if !BROKEN { q.Until = c.clock.onRedis(until) }"}}},
	{"keep no memo of a trigger", "asked again", "operator", []edit{
		{"sidecar/service/ask.lua", "redis.call('SET', memo, string.format('%d', answer) .. asked, 'PX', 86400000)", ""},
	}},
	{"tell Redis nothing that it has forgotten", "1: never twice", comesBack, []edit{
		{"lock/register.lua", "ARGV[5] ~= '1' and tonumber(ARGV[7]) > tonumber(tick) then", "false then"},
	}},
	{"tell Redis nothing when it comes back", "1: never twice", comesBack, []edit{
		{"sidecar/look.go", "l.reconnected.Swap(false) || came)", "l.reconnected.Swap(false) && !BROKEN || came && !BROKEN)"},
	}},
	{"owe nothing after a loss", "2: at least once", "empty", []edit{{"lock/register.lua", "redis.call('ZADD', due, now, ARGV[i])", ""}}},
	{"leave a lost run alone", "2: at least once", "empty", []edit{
		{"lock/settle.lua", "'requeued', 'NX', 'PX', day) then", "'requeued', 'NX', 'PX', day) and false then"},
	}},
	{"take over what was asked for by hand", "by hand", "by hand", []edit{
		{"lock/settle.go", "if d.Kind != \"manual\" && d.Kind != \"backfill\" {", "if BROKEN || d.Kind != \"manual\" && d.Kind != \"backfill\" {"},
	}},
	{"count attempts from the last claim", "attempts", "by hand", []edit{{"lock/settle.go", "d.Attempt += 1 + c.Retries", "d.Attempt += 1 + PICK(0, c.Retries)"}}},
	{"pass ticks over in silence", "fates", "", []edit{{"lock/acquire.lua", "if to - from > 1 then gaps =", "if false then gaps ="}}},
	{"free what a dead run overlapped", "3: skipped for good", "", []edit{
		{"lock/settle.lua", "verb == 'reap' and tonumber(ARGV[9]) - (ttl or 0) or 0", "0"},
	}},
	{"resume by Redis' clock", "2: never lost", "far clock", []edit{{"sidecar/service/pause.lua", "local at = ARGV[5] ~= '0' and tonumber(ARGV[5]) or now", "local at = now"}}},
	{"resume by Redis' clock where replicas follow their own", "2: never lost", "far clock", []edit{
		{"sidecar/service/operate.go", "if !r.Local && ", "if (BROKEN || !r.Local) && "},
	}},
	{"resume by the clocks of replicas that wait for Redis", "2: never lost", clocksApart, []edit{
		{"sidecar/service/operate.go", "max(r.Offset, 0)", "max(r.Offset, PICK(-time.Hour, 0))"},
	}},
	{"break off when memory is full", "3: skipped for good", "memory", []edit{
		{"lock/acquire.lua", "redis.pcall('HSET', ledger, 'open', open, 'gaps'", "redis.call('HSET', ledger, 'open', open, 'gaps'"},
	}},
	{"come back to old ticks", "table", "leaves and returns", []edit{
		{"sidecar/due.go", "since.After(back):", "since.After(back) || BROKEN:"},
	}},
	{"drain without the end of its runs", "drain", "drain", []edit{{"sidecar/settle.go", "if beat.Sleep(ctx, 3*lock.Margin) {", "if BROKEN || beat.Sleep(ctx, 3*lock.Margin) {"}}},
	{"queue behind what is due", "3: one tick waits", "queues", []edit{{"lock/acquire.lua", "(waiting or isDue and redis.call('ZCARD', due) > 0)", "waiting"}}},
	{"refuse where nothing waits", "3: one tick waits", "", []edit{{"lock/acquire.lua", "policy == 'Queue' and (waiting or isDue and redis.call('ZCARD', due) > 0)", "policy == 'Queue'"}}},
	{"run again what was cancelled", "cancelled", "cancels", []edit{{"lock/settle.lua", "if cancelled then  ", "if false then  "}}},
	{"tell nobody of a cancel", "cancelled", "cancels", []edit{
		{"sidecar/service/cancel.lua", "redis.pcall('PUBLISH', ARGV[1], 'stop ' .. job)", ""},
	}},
	{"take a cancelled run for one that lost its lock", "cancelled", "cancels", []edit{
		{"sidecar/outcome.go", "		return cancelled\n", "		return PICK(lostLock, cancelled)\n"},
	}},
	{"believe that whoever has a place was followed by oneself", "taken for dead", restartsInPlace, []edit{
		{"internal/instance/instance_linux.go", "			return ErrHeld\n", "			return PICK(nil, ErrHeld)\n"},
	}},
	{"believe a copy of the file that names the dead", "taken for dead", restartsInPlace, []edit{
		{"internal/instance/instance_linux.go", "	dead = read(text, origin)\n", "	origin = PICK(boot, origin)\n	dead = read(text, origin)\n"},
	}},
	{"tell processes by the names of their replicas", "taken for dead", restartsInPlace, []edit{
		{"sidecar/acquire.go", "lock.NewRun(c.process)", "lock.NewRun(PICK(uuid.NewSHA1(uuid.Nil, []byte(c.replica)).String(), c.process))"},
		{"sidecar/acquire.go", "import (\n", "import (\n\t\"github.com/google/uuid\"\n"},
		{"sidecar/takeover.go", "died: died,", "died: PICK(slices.Repeat([]string{lock.Node(uuid.NewSHA1(uuid.Nil, []byte(replica)).String())}, len(died)), died),"},
		{"sidecar/takeover.go", "import (\n", "import (\n\t\"github.com/google/uuid\"\n"},
	}},
	{"wait for the leases of the dead", "prompt", restartsInPlace, []edit{{"sidecar/takeover.go", "t.watcher.Dead = t.isDead", "if !BROKEN { t.watcher.Dead = t.isDead }"}}},
	{"take the run of an app over with its process", "3: apps apart", asyncRuns, []edit{
		{"sidecar/acquire.go", `lock.NewRun("")`, `lock.NewRun(PICK(c.process, ""))`},
	}},
	{"let an app work beyond its lease", "3: apps apart", asyncRuns, []edit{
		{"sidecar/callback/call.go", "c.unsure = c.lasts != nil && ", "c.unsure = !BROKEN && c.lasts != nil && "},
	}},
	{"ask the lease for half a heartbeat", "async: a lease", asyncRuns, []edit{
		{"sidecar/callback/call.go", "c.lasts(c.Heartbeat)", "c.lasts(PICK(c.Heartbeat/2, c.Heartbeat))"},
	}},
	{"wait for no app that has to stop", "3: apps apart", asyncRuns, []edit{
		{"sidecar/callback/call.go", "			told = nil\n", "			told = nil\n			if BROKEN { return Report{}, context.Cause(ctx) }\n"},
	}},
	{"leave an app alone whose answer was lost", "3: apps apart", asyncRuns, []edit{
		{"sidecar/callback/attempt.go", "c.closeUnlessBeaten()", "(BROKEN && res.Code == -1 || c.closeUnlessBeaten())"},
	}},
	{"leave an app alone that a proxy has answered for", "3: apps apart", asyncRuns, []edit{
		{"sidecar/callback/attempt.go", "c.closeUnlessBeaten()", "(BROKEN && res.Code > 0 || c.closeUnlessBeaten())"},
	}},
	{"run again however many apps have died", "2: deaths", asyncRuns, []edit{
		{"sidecar/settle.go", "if end.outcome == wasInterrupted && ", "if !BROKEN && end.outcome == wasInterrupted && "},
	}},
	{"run again at once although an app has died", "2: deaths", asyncRuns, []edit{
		{"lock/settle.go", "takeover(1), wait: wait})", "takeover(1), wait: PICK(0, wait)})"},
	}},
	{"let an accepted run have the time of its call", "async: a limit", asyncRuns, []edit{
		{"sidecar/attempt.go", "limit(longest)", "if !BROKEN { limit(longest) }"},
	}},
	{"take reports on what is over", "async: a token", asyncRuns, []edit{
		{"sidecar/callback/call.go", "case c.closed || c.report != nil:", "case !BROKEN && c.closed || c.report != nil:"},
	}},
	{"take the success of a run that had to end for none", "async: a report", asyncRuns, []edit{
		{"sidecar/callback/attempt.go", "case report.Outcome == Succeeded:", "case report.Outcome == Succeeded && (!BROKEN || ctx.Err() == nil):"},
	}},
	{"wait for two heartbeats", "async: silence", asyncRuns, []edit{
		{"sidecar/callback/call.go", "c.heard.Add(c.Heartbeat)", "c.heard.Add(PICK[time.Duration](2, 1) * c.Heartbeat)"},
	}},
	{"learn nothing from other watchers", "prompt", watchersRestart, []edit{{"lock/sightings.go", "		w.seen[r.Run] = s\n", "		if !BROKEN { w.seen[r.Run] = s }\n"}}},
	{"tell more than was seen", "taken for dead", watchersRestart, []edit{
		{"lock/sightings.go", "r.leaseEnd, seen.Milliseconds()", "r.leaseEnd, PICK(int64(2), 1)*seen.Milliseconds()"},
	}},
	{"tell a takeover what has succeeded since", "since", "", []edit{
		{"lock/acquire.lua", "since = since or h[11] or 0", "since = h[11] or 0"},
	}},
	{"go back to an older success", "since", "", []edit{
		{"lock/settle.lua", "if fate == 'succeeded' and tick - (h[6] or 0) > 0 then", "if fate == 'succeeded' then"},
	}},
	{"take a failed tick for one that succeeded", "since", "", []edit{
		{"lock/settle.lua", "if fate == 'succeeded' and tick - (h[6]", "if (failed or fate == 'succeeded') and tick - (h[6]"},
	}},
	{"remember a run by hand as a success", "since", "", []edit{
		{"lock/settle.lua", "  if fate == '' then return end\n",
			"  if string.find(text, '\"outcome\":\"succeeded\"', 1, true) then note('succeeded', tick) end\n  if fate == '' then return end\n"},
	}},
	{"tell only the first attempt since when", "since", "", []edit{
		{"sidecar/attempt.go", "Since: h.since,", "Since: PICK(map[bool]time.Time{number == 1: h.since}[true], h.since),"},
	}},
	{"fire on excluded days", "days", "calendars", []edit{{"config/schedule/rules.go", "		if kept {\n			return tick, true\n", "		if BROKEN || kept {\n			return tick, true\n"}}},
	{"count excluded instants as missed", "fates", "calendars", []edit{
		{"sidecar/series.go", "	return n, first, last\n",
			"	if BROKEN && n > 0 {\n		n += max(int(first.Sub(from)/s.schedule.MinGap())-1, 0)\n	}\n	return n, first, last\n"},
	}},
	{"take a calendar's new days for the old ones", "2: never lost", "calendars", []edit{
		{"config/hash.go", "d.Sums[:excluded], d.Sums[excluded:], d.OnExcluded", "PICK(d.Sums[:0], d.Sums[:excluded]), d.Sums[excluded:], d.OnExcluded"},
	}},
	{"count every second day from another one", "days", "calendars", []edit{
		{"config/schedule/rules.go", "	k := floor(d-int64(e.From), block)", "	e.From += Day(PICK[int64](1, 0))\n	k := floor(d-int64(e.From), block)"},
	}},
	{"leave out what is to move", "2: never lost", "calendars", []edit{
		{"config/schedule/rules.go", "if r.step = rules.OnExcluded.days();", "if r.step = PICK[int64](0, rules.OnExcluded.days());"},
	}},
	{"tell no watcher twice that it has taken a run over", "5: told once", "takeovers", []edit{
		{"lock/settle.lua", "code = watcher == ARGV[10] and 'OK' or 'MOVED'", "code = 'MOVED'"},
	}},
	{"tell every watcher that it has taken a run over", "5: told once", "takeovers", []edit{
		{"lock/settle.lua", "code = watcher == ARGV[10] and 'OK' or 'MOVED'", "code = watcher and 'OK' or 'MOVED'"},
	}},
	{"ask no more whether a run was taken over", "5: told once", "takeovers", []edit{{"lock/watch.go", "		w.asked.Store(r, rec)\n", "		if !BROKEN { w.asked.Store(r, rec) }\n"}}},
	{"take over at once what the table lacks", "5: told once", "takeovers", []edit{{"lock/watch.go", "		ttl *= 2\n", "		ttl *= PICK[time.Duration](1, 2)\n"}}},
	{"count a tick that is given back as two failures", "5: a tick fails once", "takeovers", []edit{
		{"lock/settle.lua", "if not once and (tick ~= ended or before == '0') then", "if not once then"},
	}},
	{"take a tick that has yet to come for one of the pause", "2: never lost", "resumes", []edit{
		{"lock/acquire.lua", "not kind and tonumber(came) > now and 'EARLY' or 'PAUSED'", "'PAUSED'"},
	}},
	{"replace a run that may be over by the tick", "3: not yet", "", []edit{
		{"lock/acquire.lua", "if live and tonumber(came) > now then", "if live and policy ~= 'Replace' and tonumber(came) > now then"},
	}},
	{"answer every request with an id that is known", "asked again", "operator", []edit{
		{"sidecar/service/ask.lua", "if what == asked or what == '' then return", "if before then return"},
	}},
	{"take the tick beside a run by hand away", "by hand", waitsByHand, []edit{{"lock/settle.lua", "local spared = byHand and", "local spared = false and"}}},
	{"let a backfill go before the schedule", "by hand", waitsByHand, []edit{
		{"sidecar/due.go", "[d.Kind == kindBackfill]", "[!BROKEN && d.Kind == kindBackfill]"},
	}},
	{"let go on in a pause what waited by hand", "pause", waitsByHand, []edit{
		{"lock/acquire.lua", "not (since and (since == 0 and tick or since) >= tonumber(began))", "not since"},
	}},
	{"keep back in a pause what was asked for since", "2: never lost", waitsByHand, []edit{
		{"lock/acquire.lua", "not (since and (since == 0 and tick or since) >= tonumber(began))", "true"},
	}},
	{"run what waited by hand when its job left", "table", waitsByHand, []edit{
		{"sidecar/due.go", "known && w.byHand() {", "known && w.byHand() && !BROKEN {"},
		{"sidecar/due.go", "case w.attempt > 1,", "case w.attempt > 1, BROKEN && w.byHand(),"},
	}},
	{"drop nothing that waits by hand", "by hand", waitsByHand, []edit{{"sidecar/service/cancel.lua", "    redis.call('ZREM', due, m)\n", ""}}},
	{"take an old tick that succeeds for a success of now", "by hand", waitsByHand, []edit{
		{"lock/settle.lua", "once and math.max(tick, redis.call('HGET', ledger, 'lastSuccess') or 0) or now", "now"},
	}},
	{"choose a tick that was mended", "by hand", waitsByHand, []edit{
		{"sidecar/service/rerun.go", "e.Kind == \"backfill\" && e.Outcome != \"succeeded\"", "e.Kind == \"backfill\" && (BROKEN || e.Outcome != \"succeeded\")"},
	}},
	{"take the rerun of a trigger for a tick of the schedule", "by hand", waitsByHand, []edit{
		{"sidecar/service/rerun.go", "if rds.Millis(tick)%10 != 0 {", "if !BROKEN && rds.Millis(tick)%10 != 0 {"},
	}},
	{"record a cancelled run as its holder says", "cancelled", "cancels", []edit{{"lock/settle.lua", "if cut and string.find(", "if false and string.find("}}},
	{"say of a tick that was started that it was not", "fates", "apps refuse", []edit{
		{"sidecar/settle.go", "if end.outcome == notStarted && w.attempt > 1 {", "if !BROKEN && end.outcome == notStarted && w.attempt > 1 {"},
	}},
	{"watch for two leases", "prompt", "", []edit{{"lock/watch.go", "stale := now-s.since >= ttl(r.Job) ||", "stale := now-s.since >= PICK[time.Duration](2, 1)*ttl(r.Job) ||"}}},
	{"believe that a lease is as it was told", "taken for dead", "", []edit{
		{"lock/watch.go", "{ w.heard.Store(h.Running, h.Since) }", "{\n\th.leaseEnd = PICK(0, h.leaseEnd)\n\tw.heard.Store(h.Running, h.Since)\n}"},
		{"lock/watch.go", "w.heard.Load(r); told && !ok {", "w.heard.Load(Running{r.Run, r.Job, PICK(0, r.leaseEnd)}); told && (BROKEN || !ok) {"},
	}},
	{"see a run after six seconds, whatever was told", "prompt", atRest, []edit{
		{"sidecar/look.go", "	l.takeover.watcher.Hear(h)\n", "	if !BROKEN {\n\t\tl.takeover.watcher.Hear(h)\n\t}\n"},
		{"sidecar/look.go", "time.AfterFunc(2*lookEvery,", "time.AfterFunc(PICK[time.Duration](6, 2)*lookEvery,"},
	}},
	{"look at no run that was told of", "prompt", atRest, []edit{{"sidecar/look.go", "if l.sights.CompareAndSwap(false, true) {", "if !BROKEN && l.sights.CompareAndSwap(false, true) {"}}},
	{"look twice a minute", "prompt", atRest, []edit{{"sidecar/look.go", "wait, left := beat.Near(l.steps.clock.wall(), lookEvery)", "wait, left := PICK(30*time.Second, beat.Near(l.steps.clock.wall(), lookEvery))"}}},
	{"rest for half a minute", "prompt", atRest, []edit{{"sidecar/look.go", "since < longestRest", "since < PICK(30*time.Second, longestRest)"}}},
	{"forget a loss until the next tick", "2: never lost", atRest, []edit{{"sidecar/register.go", "lost := !g.", "lost := !BROKEN && !g."}}},
	{"begin a run and tell nobody", "prompt", atRest, []edit{
		{"lock/acquire.lua", "redis.pcall('PUBLISH', KEYS[5], 'run ' .. job .. ' ' .. ARGV[3] .. ' ' .. h[1] .. ' ' .. replica .. ' ' .. uuid .. ' ' .. now + ttl)", ""},
		{"lock/acquire.lua", "if redis.call('ZCARD', running) == 1 then", "if false then"},
	}},
	{"look for runs alone when something is due", "prompt", atRest, []edit{
		{"sidecar/look.go", "		l.quiet = false\n	case", "		l.quiet = l.quiet && BROKEN\n	case"},
	}},
	{"forget what comes due, at the sight of a run", "prompt", atRest, []edit{
		{"sidecar/look.go", "	if timers >= 0 {\n", "	if timers >= 0 || BROKEN {\n"},
	}},
	{"rest until the tick", "2: never lost", atRest, []edit{{"sidecar/look.go", "Add(-lookAhead)", "Add(PICK(time.Hour, -lookAhead))"}}},
	{"set a timer and tell nobody", "prompt", atRest, []edit{{"sidecar/service/timer.lua", "if tonumber(at) <= now or tonumber(at) < now + 31000 and", "if tonumber(at) <= now or false and"}}},
	{"believe a subscription that may be lost", "prompt", atRest, []edit{{"sidecar/look.go", "		l.store.Doubt()\n", "		if !BROKEN {\n			l.store.Doubt()\n		}\n"}}},
	{"believe a subscription after a request without an answer", "prompt", atRest, []edit{
		{"sidecar/service/store.go", "	r.Unanswered = s.Doubt\n", "	if !BROKEN {\n		r.Unanswered = s.Doubt\n	}\n"},
	}},
	{"let through what is due of a job whose app asks", "asks: due", asksFirst, []edit{
		{"sidecar/fire.go", "(w.asker == nil || w.asker.waits", "(!BROKEN && w.asker == nil || w.asker != nil && w.asker.waits"},
		{"sidecar/wake.go", "	return w.spec.executor\n", "	if BROKEN && w.spec.executor == nil {\n		return execute.Observer{}\n	}\n	return w.spec.executor\n"},
	}},
	{"have an app wait for a tick that is due", "asks: a refusal", asksFirst, []edit{
		{"sidecar/acquire.go", "if w.asker != nil { // no tick", "if !BROKEN && w.asker != nil { // no tick"},
	}},
	{"give a run to an app that has left", "asks: a grant", asksFirst, []edit{
		{"sidecar/asker.go", "				err = errGone\n",
			"				if BROKEN {\n					r.Begun()\n					return execute.Result{Code: http.StatusAccepted}, false\n				}\n				err = errGone\n"},
	}},
	{"give a run to an app before its tick", "1: never early", asksFirst, []edit{
		{"sidecar/asker.go", "err := r.Wait(ctx)", "err := PICK(func(context.Context) error { return nil }, r.Wait)(ctx)"},
	}},
	{"take the last tick for that of now", "asks: now", asksFirst, []edit{
		{"sidecar/ask.go", "		if after.IsZero() || ", "		if BROKEN || after.IsZero() || "},
	}},
	{"pass a lease on before its holder has stopped", "lease: apart", leases, []edit{
		{"sidecar/callback/call.go", "		return c.until\n", "		return PICK(c.heard, c.until)\n"},
	}},
	{"let a holder go on that was silent", "lease: a report", leases, []edit{
		{"sidecar/callback/call.go", "	if c.why != nil {\n		return 0, ", "	if c.why != nil && !(BROKEN && errors.Is(c.why, ErrSilent)) {\n		return 0, "},
	}},
	{"give a lease to all that ask at once", "lease: apart", leases, []edit{
		{"sidecar/acquire.go", "q.Policy = lock.HeldByOne", "q.Policy = PICK(lock.Allow, lock.HeldByOne)"},
	}},
	{"look for the end of a holding twice a minute", "lease: idle", leases, []edit{
		{"sidecar/ask.go", "if !beat.Sleep(ctx, lookEvery) {", "if !beat.Sleep(ctx, PICK(30*time.Second, lookEvery)) {"},
	}},
	{"follow a holder that has died half a lease later", "lease: followed", leases, []edit{
		{"sidecar/ask.go", "		case err == nil && len(running) == 0:\n			return nil\n",
			"		case err == nil && len(running) == 0:\n			if BROKEN {\n				beat.Sleep(ctx, s.spec(job).Lock.TTL/2)\n			}\n			return nil\n"},
	}},
	{"take it for a failure that a holder has died", "lease: no failure", leases, []edit{
		{"sidecar/spec.go", "return !sp.Schedule.IsLease() && ", "return (BROKEN || !sp.Schedule.IsLease()) && "},
	}},
}

// goEdits are the edits of Go, with BROKEN and PICK as code. Edits that two teeth share are there once.
func goEdits() []edit {
	var all []edit
	for _, f := range teeth {
		code := strings.NewReplacer("BROKEN", fmt.Sprintf("fault.On(%q)", f.what), "PICK(", fmt.Sprintf("fault.Pick(%q, ", f.what),
			"PICK[time.Duration](", fmt.Sprintf("fault.Pick[time.Duration](%q, ", f.what), "PICK[int64](", fmt.Sprintf("fault.Pick[int64](%q, ", f.what))
		for _, e := range f.edits {
			if filepath.Ext(e.file) == ".go" && !slices.Contains(all, e) {
				e.instead = code.Replace(e.instead)
				all = append(all, e)
			}
		}
	}
	for _, e := range slices.Clone(all) {
		if needs := (edit{e.file, "import (\n", "import (\n\t\"github.com/solotick/solotick/internal/testing/fault\"\n"}); !slices.Contains(all, needs) &&
			strings.Contains(e.instead, "fault.") {
			all = append(all, needs)
		}
	}
	return all
}

// faultEnv is the fault of Go that a binary built with goEdits plays; none when it is not set.
const faultEnv = "SOLOTICK_SIM_FAULT"

// faultSource is the package that the edits of Go ask.
const faultSource = `// Package fault chooses one of the faults that this binary has.
package fault

import "os"

var active = os.Getenv("` + faultEnv + `")

func On(what string) bool { return what == active }

func Pick[T any](what string, broken, right T) T {
	if On(what) {
		return broken
	}
	return right
}
`

// scriptEdits are the edits of scripts.
func (f tooth) scriptEdits() []edit {
	return slices.DeleteFunc(slices.Clone(f.edits), func(e edit) bool { return filepath.Ext(e.file) != ".lua" })
}

// untold drops the count of skips that another edit has marked, with until. Nothing else marks any.
var untold = edit{"sidecar/record.go", "w.close(because != redisError)\n",
	"w.close(because != redisError)\n\tif why.until.Equal(time.Unix(1, 0)) {\n\t\treturn why\n\t}\n"}

// findWithin is the number of seeds, all or those of one class, that have to find a fault.
const findWithin = 20000

// TestTeeth builds the simulation over sources that have all faults, chooses one after the other, and expects that some
// seed finds it.
func TestTeeth(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("plays hundreds of seeds, without the race detector: see make proof")
	}
	run := results.Of(t, "go -C proof test ./sim -run TestTeeth -timeout 1h")
	foundBy, all := map[string]uint64{}, 0
	binary := build(t, append(goEdits(), editable...))
	for _, f := range teeth {
		t.Run(strings.ReplaceAll(f.what, " ", "_"), func(t *testing.T) {
			t.Setenv(faultEnv, f.what)
			t.Setenv(scriptsEnv, changedScripts(t, f.scriptEdits()))
			var found string
			var by uint64
			played := 0
			last := uint64(findWithin)
			if f.class != "" {
				last *= 100 / share
			}
			shards(t, binary, f.class, 1, last, func(r Result) bool {
				played++
				i := slices.IndexFunc(r.Violations, func(v string) bool { return strings.HasPrefix(v, "promise "+f.promise) })
				if i >= 0 && (by == 0 || r.Seed < by) {
					found, by = r.Violations[i], r.Seed
				}
				return by == 0
			})
			all += played
			if by == 0 {
				t.Fatalf("%s: not found by %d seeds", f.what, played)
			}
			foundBy[f.what] = by
			t.Logf("%s: found by seed %d of %d played: %s", f.what, by, played, found)
		})
	}
	run.Add(len(teeth), "faults")
	run.Add(len(foundBy), "found")
	run.Add(all, "seeds")
	run.Details = foundBy
}
