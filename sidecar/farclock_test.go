package sidecar

import (
	"fmt"
	"testing"
	"time"
)

// everyTen has some jobs that come due together each ten seconds.
func everyTen(jobs int, keys string) string {
	table := "jobs:\n"
	for i := range jobs {
		table += fmt.Sprintf("  - {name: j%d, schedule: '@every 10s', exec: {command: [x]}%s}\n", i, keys)
	}
	return table
}

// TestAFarClockLosesNothingThatIsHandedOn: whether a tick is still worth starting is asked of one clock wherever it is
// asked: where a tick is handed over, waits for a slot, or waits for the end of the run before.
func TestAFarClockLosesNothingThatIsHandedOn(t *testing.T) {
	long(t)
	const late, local = 8 * time.Second, "clock: local\n"
	for name, c := range map[string]struct {
		table       string
		redis, skew time.Duration // the skew is that of one replica of three
	}{
		"all clocks agree":                     {},
		"Redis 65 s behind":                    {redis: -65 * time.Second},
		"Redis two minutes ahead":              {redis: 2 * time.Minute},
		"one replica two minutes ahead":        {skew: 2 * time.Minute},
		"one replica two minutes behind":       {skew: -2 * time.Minute},
		"clock: local, Redis 12 s behind":      {table: local, redis: -12 * time.Second},
		"clock: local, Redis 12 s ahead":       {table: local, redis: 12 * time.Second},
		"clock: local, one replica 12 s ahead": {table: local, skew: 12 * time.Second},
	} {
		play := func(what, table string, jobs int, takes time.Duration, change func(int, *replica)) {
			t.Run(name+", "+what, func(t *testing.T) {
				simulate(t, c.table+table, func(w *world) {
					for i := range 3 {
						w.replica(takes, func(r *replica) {
							if change(i, r); i == 2 {
								r.skew = c.skew
							}
						})
					}
					w.at(-35 * time.Second)
					w.redisIsAhead(c.redis)
					w.at(3*time.Minute + 9*time.Second)
					lost := map[string]time.Duration{}
					for i := range jobs {
						by := w.started(fmt.Sprintf("j%d", i))
						for at := time.Duration(0); at < 100*time.Second; at += 10 * time.Second {
							tick := w.origin().Add(at)
							if s := by[tick]; len(s) != 1 || s[0].at.Sub(tick) > max(-c.redis, 0)+late {
								lost[fmt.Sprintf("j%d +%s", i, at)] = time.Duration(len(s))
							}
						}
					}
					if len(lost) > 0 {
						t.Errorf("not started once, and in time: %v", lost)
					}
					if n := w.sum("missed_total"); n > 0 {
						t.Errorf("%v ticks were missed", n)
					}
				})
			})
		}
		play("an app refuses", everyTen(1, ""), 1, 0, func(i int, r *replica) {
			if i == 0 {
				r.work = nil
			}
		})
		play("one slot", "maxRunning: 1\n"+everyTen(7, ""), 7, 2*time.Second, func(int, *replica) {})
		play("Replace", everyTen(1, ", concurrencyPolicy: Replace"), 1, 12*time.Second, func(int, *replica) {})
	}
}
