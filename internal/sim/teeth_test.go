package sim

import (
	"slices"
	"strings"
	"testing"
)

// A tooth is a fault put into the sources on purpose, which the seeds have to find.
type tooth struct {
	what    string
	promise string // the one that it breaks
	edits   []edit // of files of this module
}

var teeth = []tooth{
	{"drop the compare", "6: accounts", []edit{{"lock/settle.lua", "elseif not mine then", "elseif false then"}}},
	{"drop the claim", "1: never twice", []edit{{"lock/acquire.lua", "'tick', member == '' and ARGV[3] or h[2] or 0", "'tick', h[2] or 0"}}},
	{"stretch trust from the reply", "3: trust", []edit{
		{"lock/lease.go", "l.trust.Store(int64(sent + c.TTL - Margin))", "sent = s.boottime()\n\t\tl.trust.Store(int64(sent + c.TTL - Margin))"},
		{"lock/acquire.go", "l.trust.Store(int64(sent + c.TTL - Margin))", "sent = q.store.boottime()\n\tl.trust.Store(int64(sent + c.TTL - Margin))"},
	}},
	{"forget the due entry on crash", "2: never lost", []edit{
		{"lock/settle.lua", "if again ~= '' and verb ~= 'finish' and not stop", "if again ~= '' and verb ~= 'finish' and verb ~= 'reap'"},
	}},
	{"forget what waited behind a crash", "2: never lost", []edit{
		{"lock/settle.lua", "if tonumber(refused) > tick then enqueue", "if tonumber(refused) > tick and verb ~= 'reap' then enqueue"},
	}},
	{"extend without compare", "4: a foreign lock", []edit{{"lock/extend.lua", "if h[1] ~= uuid or owner and owner ~= uuid then return {'LOST', now} end", ""}}},
	{"DEL without compare", "4: a foreign lock", []edit{
		{"lock/release.lua", "if redis.call('GET', lock) ~= uuid or redis.call('HGET', ledger, 'run' .. ARGV[2]) == uuid then return 0 end", ""},
	}},
	{"start without trust", "3: trust", []edit{{"sidecar/attempt.go", "if !h.Trusted() {", "if false {"}}},
	{"register nothing anew", "2: never lost", []edit{{"sidecar/register.go", "&& !born.Equal(s.timers.bornAt())", "&& false && born.IsZero()"}}},
	{"count no skip", "5: never silently", []edit{{"sidecar/outcome.go", "s.metrics.job(w.job.label).skipped(r)", ""}}},
	{"tell no refusal", "5: never silently", []edit{{"sidecar/fire.go", "s.skipped(w, refusal(w, a), by(a)...)", "_, _ = refusal(w, a), by(a)\n\t\tw.close(true)"}}},
	{"tell a handover twice", "5: never silently", []edit{
		{"sidecar/fire.go", "s.handover(w, h, &end) {\n\t\treturn", "s.handover(w, h, &end) {\n\t\ts.skipped(w, notReady)\n\t\treturn"},
	}},
	{"sleep through a tick", "5: never silently", []edit{{"sidecar/sidecar.go", "	s.launch(&w)\n", "	if w.tick.Unix()%20 != 0 {\n\t\ts.launch(&w)\n\t}\n"}}},
	{"claim in a pause", "pause", []edit{
		{"lock/acquire.lua", "if asked ~= 'manual' and asked ~= 'backfill' and not over then return answer('PAUSED', ends) end", ""},
	}},
	{"stay paused", "2: never lost", []edit{{"lock/acquire.lua", "local over = ends ~= 0 and math.max(asked and now or 0, tick) >= ends", "local over = false"}}},
	{"nudge nobody", "prompt", []edit{{"lock/settle.lua", "if nudge then redis.pcall('PUBLISH'", "if false then redis.pcall('PUBLISH'"}}},
	{"stop nobody", "prompt", []edit{{"lock/acquire.lua", "redis.pcall('PUBLISH', string.gsub(due, 'due$', 'events'), 'stop ' .. job)", ""}}},
	{"catch up before it is due", "table", []edit{{"sidecar/job.go", " || j.series.due(j.taken).After(now)", ""}}},
	{"ask on for what has left the table", "table", []edit{{"sidecar/job.go", "j.retired, j.heir = true, heir\n\tj.end()\n", "j.retired, j.heir = true, heir\n"}}},
	{"watch for two leases", "prompt", []edit{{"lock/watch.go", "if now-s.since >= ttl(r.Job) {", "if now-s.since >= 2*ttl(r.Job) {"}}},
}

// findWithin is the number of seeds that have to find a fault.
const findWithin = 1000

// TestTeeth builds the simulation over sources with one fault each, and expects that some seed finds it.
func TestTeeth(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a test binary for each fault")
	}
	for _, f := range teeth {
		t.Run(strings.ReplaceAll(f.what, " ", "_"), func(t *testing.T) {
			binary := build(t, f.edits)
			var found string
			var by uint64
			played := 0
			shards(t, binary, 1, findWithin, func(r Result) bool {
				played++
				i := slices.IndexFunc(r.Violations, func(v string) bool { return strings.HasPrefix(v, "promise "+f.promise) })
				if i >= 0 && (by == 0 || r.Seed < by) {
					found, by = r.Violations[i], r.Seed
				}
				return by == 0
			})
			if by == 0 {
				t.Fatalf("%s: not found by %d seeds", f.what, played)
			}
			t.Logf("%s: found by seed %d of %d played: %s", f.what, by, played, found)
		})
	}
}
