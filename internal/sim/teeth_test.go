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
}

// findWithin is the number of seeds that have to find a fault.
const findWithin = 1000

// TestTeeth builds the simulation over sources with one fault each, and expects that some seed finds it.
func TestTeeth(t *testing.T) {
	if testing.Short() {
		t.Skip("builds six test binaries")
	}
	for _, f := range teeth {
		t.Run(strings.ReplaceAll(f.what, " ", "_"), func(t *testing.T) {
			binary := build(t, f.edits)
			var found *Result
			played := 0
			shards(t, binary, 1, findWithin, func(r Result) bool {
				played++
				broken := slices.ContainsFunc(r.Violations, func(v string) bool { return strings.HasPrefix(v, "promise "+f.promise) })
				if broken && (found == nil || r.Seed < found.Seed) {
					found = &r
				}
				return found == nil
			})
			if found == nil {
				t.Fatalf("%s: not found by %d seeds", f.what, played)
			}
			t.Logf("%s: found by seed %d, the %dth played: %s", f.what, found.Seed, played, found.Violations[0])
		})
	}
}
