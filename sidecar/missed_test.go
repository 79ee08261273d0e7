package sidecar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
)

// outage starts a replica, stops it before the second tick, and lets another one take over between the fourth and the
// fifth.
func outage(t *testing.T, keys string, f func(w *world)) {
	t.Helper()
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}, `+keys+`}
`, func(w *world) {
		first := w.replica(time.Second)
		w.at(30 * time.Second)
		first.stop()
		<-first.done
		w.at(3*time.Minute + 30*time.Second)
		w.replica(time.Second)
		w.at(4*time.Minute + 30*time.Second)
		f(w)
	})
}

// ticks are the ticks started so far, in the order of their starts: "0m catchup".
func (w *world) order(job string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.starts {
		if s.job == job {
			out = append(out, fmt.Sprintf("%s %s", s.tick.Sub(w.origin()), s.run.Kind))
		}
	}
	return out
}

func (w *world) expectOrder(job string, want ...string) {
	w.t.Helper()
	if got := w.order(job); !slices.Equal(got, want) {
		w.t.Errorf("%s was started for %q, want %q\n%s", job, got, want, w.log())
	}
}

func TestTheNewestMissedTickIsFiredLate(t *testing.T) {
	outage(t, "missed: latest", func(w *world) {
		w.expectOrder("minute", "0s schedule", "3m0s catchup", "4m0s schedule")
		w.expect(2, "missed_total")
		if s := w.started("minute")[w.origin().Add(3*time.Minute)][0]; s.at.Sub(w.origin()) > 3*time.Minute+33*time.Second {
			t.Errorf("it was fired at +%s, want soon after the replica came", s.at.Sub(w.origin()))
		}
	})
}

func TestAllMissedTicksAreFiredLateInOrder(t *testing.T) {
	outage(t, "missed: all", func(w *world) {
		w.expectOrder("minute", "0s schedule", "1m0s catchup", "2m0s catchup", "3m0s catchup", "4m0s schedule")
		w.expect(0, "missed_total")
	})
}

func TestSkippedMissedTicksAreCounted(t *testing.T) {
	outage(t, "missed: skip", func(w *world) {
		w.expectOrder("minute", "0s schedule", "4m0s schedule")
		w.expect(3, "missed_total")
	})
}

func TestWhatIsPastItsDeadlineIsNotFiredLate(t *testing.T) {
	outage(t, "missed: all, startingDeadline: 100s", func(w *world) {
		w.expectOrder("minute", "0s schedule", "2m0s catchup", "3m0s catchup", "4m0s schedule")
		w.expect(1, "missed_total")
	})
	outage(t, "missed: latest, startingDeadline: 20s", func(w *world) {
		w.expectOrder("minute", "0s schedule", "4m0s schedule")
		w.expect(3, "missed_total")
		w.expect(1, "skips_total", "too_late")
	})
}

func TestThreeReplicasCatchUpOnce(t *testing.T) {
	long(t)
	for _, policy := range []string{"latest", "all"} {
		simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", missed: `+policy+`, exec: {command: [x]}}
`, func(w *world) {
			for range 3 {
				w.replica(time.Second)
			}
			w.at(30 * time.Second)
			for _, r := range w.replicas {
				r.disconnect(true)
			}
			w.at(3*time.Minute + 30*time.Second)
			for _, r := range w.replicas {
				r.disconnect(false)
			}
			w.at(4*time.Minute + 30*time.Second)
			if policy == "latest" {
				w.expectOrder("minute", "0s schedule", "3m0s schedule", "4m0s schedule")
				w.expect(2, "missed_total")
			} else {
				w.expectOrder("minute", "0s schedule", "1m0s catchup", "2m0s catchup", "3m0s catchup", "4m0s schedule")
				w.expect(0, "missed_total")
			}
		})
	}
}

func TestTheCatchingUpOfAllIsBounded(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: second, schedule: "@every 1s", missed: all, exec: {command: [x]}}
`, func(w *world) {
		r := w.replica(0)
		w.at(500 * time.Millisecond)
		r.disconnect(true)
		w.at(5*time.Minute + 500*time.Millisecond)
		r.disconnect(false)
		w.at(10*time.Minute + 500*time.Millisecond)
		late, fires := 0, 0
		for _, o := range w.order("second") {
			if strings.HasSuffix(o, "catchup") {
				late++
			}
			if !strings.HasPrefix(o, "-") {
				fires++
			}
		}
		missed, overlaps := int(r.value("missed_total")), int(r.value("skips_total", "overlap")) // a late run may be in the way
		if late != maxOlder+1 || fires+missed+overlaps != 601 {
			t.Errorf("%d ticks were fired late, want %d; %d fires, %d missed and %d overlaps of 601", late, maxOlder+1, fires, missed, overlaps)
		}
		if !strings.Contains(r.logs.String(), `msg="firing missed ticks late" job=second ticks=100`) {
			t.Error("the log does not say how many are fired late")
		}
	})
}

// A job that is new, or whose schedule has changed, has missed nothing.
func TestAChangedScheduleHasMissedNothing(t *testing.T) {
	const table = `
jobs:
  - {name: minute, schedule: "* * * * *", missed: all, exec: {command: [x]}}
`
	simulate(t, table, func(w *world) {
		first := w.replica(time.Second)
		w.at(30 * time.Second)
		first.stop()
		<-first.done
		w.reload(strings.Replace(table, "* * * * *", "0/1 * * * *", 1))
		w.at(3*time.Minute + 30*time.Second)
		w.replica(time.Second)
		w.at(4*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule", "4m0s schedule")
		w.expect(0, "missed_total")
	})
}

// The tick that waited behind a run that died is not the only one that was missed meanwhile.
func TestWhatWasMissedBehindADeadRunIsNotForgotten(t *testing.T) {
	long(t)
	for policyOfMissed, want := range map[string][]string{
		"all":    {"0s schedule", "1m0s catchup", "2m0s catchup", "3m0s catchup", "4m0s schedule", "5m0s schedule"},
		"latest": {"0s schedule", "3m0s catchup", "4m0s schedule", "5m0s schedule"},
	} {
		simulate(t, policy("missed: "+policyOfMissed+", timeout: 10m"), func(w *world) {
			first := w.replica(40 * time.Second)
			w.at(10 * time.Second)
			first.crash()
			w.at(3*time.Minute + 30*time.Second)
			w.replica(time.Second)
			w.at(5*time.Minute + 30*time.Second)
			w.expectOrder("minute", want...)
			if policyOfMissed == "latest" {
				w.expect(2, "missed_total")
			}
		})
	}
}

// A replica that starts while Redis is away does not know what was missed before it has asked.
func TestAReplicaThatStartsInAnOutageCatchesUp(t *testing.T) {
	long(t)
	for i := range 5 {
		simulate(t, policy("missed: all"), func(w *world) {
			first := w.replica(time.Second)
			w.at(30 * time.Second)
			first.stop()
			<-first.done
			w.at(90 * time.Second)
			second := w.replica(time.Second, func(r *replica) { r.cut = true })
			w.at(3*time.Minute + 30*time.Second + time.Duration(i)*237*time.Millisecond)
			second.disconnect(false)
			w.at(4*time.Minute + 30*time.Second)
			w.expectOrder("minute", "0s schedule", "1m0s catchup", "2m0s catchup", "3m0s catchup", "4m0s schedule")
		})
	}
}

func TestTicksOfAPauseThatEndedByItselfAreNotCaughtUp(t *testing.T) {
	long(t)
	simulate(t, policy("missed: all"), func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(30 * time.Second)
		w.must(w.replicas[0].store.Pause(w.t.Context(), "minute", "", w.origin().Add(3*time.Minute)))
		w.at(4*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule", "3m0s catchup", "4m0s schedule")
		w.expect(0, "missed_total")
	})
}

// Redis lost its data, and a job with frequent ticks was registered anew by its own claim before anybody looked.
func TestALossOfDataIsNoticedForAllJobs(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: rare, schedule: "*/5 * * * *", exec: {command: [x]}}
  - {name: second, schedule: "@every 1s", exec: {command: [x]}}
`, func(w *world) {
		for range 3 {
			w.replica(0)
		}
		w.at(30*time.Second + 500*time.Millisecond)
		w.redis.FlushAll()
		w.at(10 * time.Minute)
		w.expectOrder("rare", "4m0s schedule", "9m0s schedule")
	})
}

// TestATickIsNotCaughtUpBeforeItIsDue: after a reload a job knows that the tick to come was taken, and not yet that the
// wake that took it has asked for it.
func TestATickIsNotCaughtUpBeforeItIsDue(t *testing.T) {
	simulate(t, everySecond(0, "latest"), func(w *world) {
		r := w.replica(time.Millisecond, func(r *replica) { r.far = 5 * time.Millisecond })
		for n := 1; n < 20; n++ {
			w.at(time.Duration(n)*time.Second - ahead + time.Millisecond) // the timer's wake is asking
			w.swap(r, everySecond(n, "latest"))
		}
		w.at(20*time.Second + 500*time.Millisecond)
		w.each("second", time.Second, time.Second, 20*time.Second, 10*time.Millisecond)
		if log := r.logs.String(); strings.Contains(log, "kind=catchup") {
			t.Errorf("a wake caught up, and nothing was missed:\n%s", log)
		}
	})
}

// notes keeps messages in place of sending them.
type notes struct{ all []notify.Message }

func (*notes) Send(notify.Ping)        {}
func (n *notes) Tell(m notify.Message) { n.all = append(n.all, m) }

func TestTheMessageOfSeveralGapsIsOfAllTheirTicks(t *testing.T) {
	simulate(t, policy("notify: {change: {url: http://127.0.0.1/}}"), func(w *world) {
		r := w.replica(time.Second)
		w.at(10*time.Minute + 30*time.Second)
		minute := func(n time.Duration) time.Time { return w.origin().Add(n * time.Minute) }
		gaps := fmt.Sprintf("%d-%d %d-%d ", minute(0).UnixMilli(), minute(3).UnixMilli(), minute(5).UnixMilli(), minute(7).UnixMilli())
		w.redis.HSet("solotick:{test}:job:minute", "gaps", gaps)
		record, heard := *r.firer.record, &notes{}
		record.notify = heard
		record.book(r.spec("minute"), gaps)
		w.at(10*time.Minute + 31*time.Second)
		if len(heard.all) != 1 || heard.all[0].Count != 3 || !heard.all[0].First.Equal(minute(1)) || !heard.all[0].Tick.Equal(minute(6)) {
			t.Errorf("told %+v, want 3 ticks from %s to %s\n%s", heard.all, minute(1), minute(6), w.log())
		}
	})
}

func TestTheReasonOfAMissedTickIsThatOfItsOwnSkip(t *testing.T) {
	minute := func(n int64) time.Time { return time.Unix(60*n, 0) }
	r := &recorder{replica: "r1", began: minute(2), heartbeat: &heartbeat{skips: map[string]service.Skip{
		"minute": {Tick: minute(5), Reason: string(redisError)},
	}}}
	for _, c := range []struct {
		first, last int64
		want        string
	}{
		{1, 1, "no replica claimed it before replica r1 started"}, {3, 4, ""}, {6, 7, ""},
		{5, 5, "replica r1 skipped it: Redis did not answer"}, {4, 5, "replica r1 skipped it: Redis did not answer"},
		{5, 6, "replica r1 skipped it: Redis did not answer"},
	} {
		e := &service.Entry{Job: "minute", First: minute(c.first), Tick: minute(c.last)}
		if got := r.whyMissed(e); got != c.want {
			t.Errorf("of the ticks from %d to %d: %q, want %q", c.first, c.last, got, c.want)
		}
	}
}

// A tick that came due while the lease of a dead run lasted is missed because of that run, whatever the replica did
// that counts it.
func TestAMissIsBlamedOnTheDeadRunThatWasInItsWay(t *testing.T) {
	simulate(t, "\njobs:\n  - {name: five, schedule: '@every 5s', lock: {ttl: 15s}, exec: {command: [x]}}\n", func(w *world) {
		first := w.replica(time.Hour)
		w.at(time.Second)
		w.replica(time.Second)
		tick := w.replicas[0].starts("five")
		w.at(3 * time.Second)
		first.crash()
		w.at(40 * time.Second)
		w.operator(func(s *service.Store) {
			states, err := s.States(w.t.Context(), []string{"five"})
			w.must(err)
			want := fmt.Sprintf("the run of %s on r1, which had died, was not over", stamp(tick))
			if m := states["five"].Missed; m == nil || m.Detail != want {
				t.Errorf("missed: %+v, want %q\n%s", m, want, w.log())
			}
		})
	})
}

// The tick of a takeover that was dropped is interrupted too, and no replica ran it.
func TestAMissIsBlamedOnNoTickThatNobodyRan(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(time.Second)
		w.at(5 * time.Minute)
		minute := func(n time.Duration) time.Time { return w.origin().Add(n * time.Minute) }
		for run, want := range map[string]string{"": "", "r": fmt.Sprintf("the run of %s on r9, which had died, was not over", stamp(minute(1)))} {
			e := service.Entry{Job: "minute", Outcome: "interrupted", Run: run, Replica: "r9", First: minute(1), Tick: minute(1)}
			if run == "" {
				e.Count = 1
			}
			w.must(r.store.AppendHistory(w.t.Context(), &e))
			if got := r.firer.record.deadRun(w.t.Context(), r.spec("minute"), &service.Entry{Job: "minute", First: minute(2), Tick: minute(2)}); got != want {
				t.Errorf("run %q: %q, want %q", run, got, want)
			}
			w.redis.Del("solotick:{test}:history:minute")
		}
	})
}

// starts is the tick that a replica started last.
func (r *replica) starts(job string) (tick time.Time) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, s := range r.world.starts {
		if s.job == job && s.replica == r.name {
			tick = s.tick
		}
	}
	return tick
}
