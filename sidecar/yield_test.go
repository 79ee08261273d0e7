package sidecar

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// herdTable has n jobs with one schedule.
func herdTable(n int, schedule string) string {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: j%d, schedule: %q, exec: {command: [x]}}\n", i, schedule)
	}
	return b.String()
}

// scriptCounter counts the scripts that a replica sends.
type scriptCounter struct {
	redis.Hook
	n atomic.Int64
}

func (*scriptCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *scriptCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *scriptCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

func (c *scriptCounter) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if cmd.Name() == "evalsha" {
			c.n.Add(1)
		}
	}
}

// allStarted demands that each job of a herd was started once for the tick, at most so late.
func (w *world) allStarted(jobs int, tick time.Time, late time.Duration) {
	w.t.Helper()
	for i := range jobs {
		job := fmt.Sprintf("j%d", i)
		if s := w.started(job)[tick]; len(s) != 1 || s[0].at.Sub(tick) > late {
			w.t.Fatalf("tick %s of %s was started as %+v", stamp(tick), job, s)
		}
	}
}

// losersAsk plays a herd's first tick on three replicas that know of each other, and returns how many scripts they sent
// beside those that claim and settle the runs: to release their locks, and those that the runs did not need.
func (w *world) losersAsk(jobs int, far time.Duration) (scripts int64) {
	for range 3 {
		w.replica(5*time.Millisecond, func(r *replica) { r.far = far })
	}
	w.at(50 * time.Second)
	counters := make([]*scriptCounter, len(w.replicas))
	for i, r := range w.replicas {
		counters[i] = &scriptCounter{}
		r.client.AddHook(counters[i])
	}
	w.at(65 * time.Second)
	w.allStarted(jobs, w.origin().Add(time.Minute), time.Second)
	for _, c := range counters {
		scripts += c.n.Load()
	}
	return scripts - 2*int64(jobs) // acquire and settle
}

// Runs that end within a moment release their locks in one call.
func TestAHerdReleasesItsLocksTogether(t *testing.T) {
	simulate(t, herdTable(30, "* * * * *"), func(w *world) {
		if n := w.losersAsk(30, 0); n > 3 {
			t.Errorf("three replicas have sent %d scripts to release 30 locks", n)
		}
	})
}

// Redis takes longer for the claims of a herd.
func TestTheLargerTheHerdTheEarlierItIsClaimed(t *testing.T) {
	long(t)
	for _, c := range []struct {
		before, jobs int // at the start, and after a reload
		want         time.Duration
	}{
		{10, 10, ahead}, {1000, 1000, 75 * time.Millisecond}, {10, 1500, 100 * time.Millisecond}, {1500, 10, ahead},
	} {
		simulate(t, herdTable(c.before, "* * * * *"), func(w *world) {
			w.replica(5 * time.Millisecond)
			w.at(30 * time.Second)
			w.swap(w.replicas[0], herdTable(c.jobs, "* * * * *"))
			w.at(119 * time.Second)
			var first atomic.Pointer[time.Time]
			w.redis.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
				if now := time.Now(); command == "EVALSHA" {
					first.CompareAndSwap(nil, &now)
				}
				return false
			})
			w.at(125 * time.Second)
			tick := w.origin().Add(2 * time.Minute)
			// When it went to sleep, the bound of Redis' clock had grown for half a minute: by 0.1 ms a second.
			if got := tick.Sub(*first.Load()); (got - c.want).Abs() > 4*time.Millisecond {
				w.t.Errorf("of %d jobs, %d before, the first is claimed %s ahead, want %s", c.jobs, c.before, got, c.want)
			}
			w.allStarted(c.jobs, tick, 2*time.Millisecond)
		})
	}
}

// Its claim comes ahead of it, while the run still lives.
func TestARunThatEndsBeforeATickIsNotInItsWay(t *testing.T) {
	for _, policy := range []string{"Forbid", "Queue", "Replace", "Allow, concurrency: 1"} {
		simulate(t, "jobs:\n  - {name: x, schedule: \"*/10 * * * * *\", concurrencyPolicy: "+policy+", exec: {command: [x]}}\n", func(w *world) {
			w.replica(10*time.Second - ahead/2)
			w.replica(10*time.Second - ahead/2)
			w.at(65 * time.Second)
			for at := 10 * time.Second; at < time.Minute; at += 10 * time.Second {
				if s := w.started("x")[w.origin().Add(at)]; len(s) != 1 {
					w.t.Errorf("%s, tick %s: %+v", policy, at, s)
				}
			}
			w.expect(0, "runs_total", "x", "replaced")
			w.expect(0, "skips_total", "x", "queued")
			w.expect(0, "skips_total", "x", "overlap")
		})
	}
}

func TestLosersHearOfClaimsAndDoNotAsk(t *testing.T) {
	long(t)
	simulate(t, herdTable(120, "* * * * *"), func(w *world) {
		if n := w.losersAsk(120, 0); n > 3 {
			t.Errorf("losers have sent %d scripts for 120 ticks", n)
		}
	})
}

// A herd's claims take longer than a stagger.
func TestLosersWaitWhileAHerdIsClaimed(t *testing.T) {
	long(t)
	simulate(t, herdTable(600, "* * * * *"), func(w *world) {
		if n := w.losersAsk(600, 5*time.Millisecond); n > 6 {
			t.Errorf("losers have sent %d scripts for 600 ticks", n)
		}
	})
}

// A message that is lost costs a question.
func TestWhoDoesNotHearOfAClaimAsks(t *testing.T) {
	simulate(t, herdTable(12, "* * * * *"), func(w *world) {
		w.operator(func(s *service.Store) { w.must(s.Sync(w.t.Context())) }) // the server begins with the first client
		w.redis.Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
			lost := command == "PUBLISH" && strings.HasPrefix(args[1], "run ")
			if lost {
				p.WriteInt(0)
			}
			return lost
		})
		if n := w.losersAsk(12, 0); n != 24+3 {
			t.Errorf("losers have sent %d scripts for 12 ticks", n)
		}
		for i := range 12 {
			job := fmt.Sprintf("j%d", i)
			w.expect(4, "skips_total", job, "fired_elsewhere") // of two ticks
		}
	})
}

// The claim of a tick in another ledger is none in this one.
func TestAClaimInAnotherLedgerIsNotBelieved(t *testing.T) {
	simulate(t, herdTable(8, "* * * * *"), func(w *world) {
		gone, r := w.replica(5*time.Millisecond), w.replica(5*time.Millisecond)
		w.at(57 * time.Second)
		gone.crash()
		w.at(time.Minute - ahead/2)
		for name, j := range r.jobs() {
			a := lock.Answer{Code: lock.Fired, Prev: w.origin().Add(time.Minute), Holder: "another"}
			a.Born = j.known(j.inForce()).born.Add(time.Millisecond)
			r.looker.hear(lock.Heard{Running: lock.Running{Job: name}, Tick: a.Prev, Answer: a})
		}
		w.at(65 * time.Second)
		w.allStarted(8, w.origin().Add(time.Minute), 2*time.Millisecond)
	})
}

// The ticks of the replica that is gone are asked for by one of the others, and not by all of them.
func TestOneReplicaAsksForTheTicksOfOneThatIsGone(t *testing.T) {
	long(t)
	const jobs, replicas = 40, 6
	simulate(t, herdTable(jobs, "* * * * *"), func(w *world) {
		for range replicas {
			w.replica(5 * time.Millisecond)
		}
		w.at(57 * time.Second)
		counters := make([]*scriptCounter, replicas-1)
		for i, r := range w.replicas[1:] {
			counters[i] = &scriptCounter{}
			r.client.AddHook(counters[i])
		}
		w.replicas[0].crash()
		w.at(65 * time.Second)
		w.allStarted(jobs, w.origin().Add(time.Minute), 2*time.Millisecond)
		scripts := int64(-2 * jobs) // acquire and settle
		for _, c := range counters {
			scripts += c.n.Load()
		}
		if scripts > replicas-1 { // each releases its locks
			t.Errorf("losers have sent %d scripts for %d ticks", scripts, jobs)
		}
	})
}

// If the clock was set back since a timer went off, a wake comes ahead of its time. It must not keep those of other
// jobs waiting.
func TestAWakeThatIsAheadOfItsTickKeepsNoOtherWaiting(t *testing.T) {
	long(t)
	simulate(t, herdTable(8, "*/2 * * * * *")+"  - {name: ahead, schedule: \"*/2 * * * * *\", exec: {command: [x]}}\n", func(w *world) {
		r := w.replica(0)
		other := w.replica(0)
		w.at(13 * time.Second) // they have seen each other
		other.crash()
		var wakes []*wake
		for name, j := range r.jobs() {
			tick := w.origin().Add(14 * time.Second)
			if name == "ahead" {
				tick = tick.Add(2 * time.Second)
			}
			if wake, ok := j.take(tick); ok {
				wakes = append(wakes, &wake)
			}
		}
		r.firer.launchTogether(wakes)
		w.at(20 * time.Second)
		w.each("ahead", 2*time.Second, 16*time.Second, 18*time.Second, 100*time.Millisecond)
		for i := range 8 {
			w.each(fmt.Sprintf("j%d", i), 2*time.Second, 14*time.Second, 18*time.Second, 100*time.Millisecond)
		}
	})
}

func TestInAHerdAReplicaThatIsGoneCostsNoTime(t *testing.T) {
	long(t)
	simulate(t, herdTable(300, "* * * * *"), func(w *world) {
		for range 3 {
			w.replica(5 * time.Millisecond)
		}
		w.at(57 * time.Second)
		w.replicas[0].crash()
		w.at(65 * time.Second)
		w.allStarted(300, w.origin().Add(time.Minute), 2*time.Millisecond)
	})
}

func TestInAHerdAReplicaThatIsFullCostsATenthOfASecond(t *testing.T) {
	long(t)
	table := herdTable(300, "* * * * *")
	simulate(t, "maxRunning: 5\n"+table, func(w *world) {
		w.replica(10 * time.Millisecond) // takes a fifth of a second for its share
		w.reload(table)
		w.replica(5 * time.Millisecond)
		w.replica(5 * time.Millisecond)
		w.at(time.Minute + 10*time.Second)
		w.allStarted(300, w.origin().Add(time.Minute), 104*time.Millisecond)
	})
}

// A replica that is told to stop between the first question for a tick and its own has wakes that wait for it.
func TestEveryWakeThatWaitsForOthersIsCountedInADrain(t *testing.T) {
	const jobs = 12
	simulate(t, herdTable(jobs, "* * * * *"), func(w *world) {
		for range 3 {
			w.replica(5 * time.Millisecond)
		}
		w.at(time.Minute - ahead + stagger/2)
		leaves := w.replicas[0]
		before := map[string]float64{}
		count := func(job string) float64 { return leaves.value("fires_total", job) + leaves.value("skips_total", job) }
		for i := range jobs {
			job := fmt.Sprintf("j%d", i)
			before[job] = count(job)
		}
		leaves.stop()
		w.at(time.Minute + time.Second)
		for i := range jobs {
			job := fmt.Sprintf("j%d", i)
			w.once(job, time.Minute, time.Minute, time.Second)
			if n := count(job); n != 2 { // the ticks of both minutes
				t.Errorf("%v of two wakes of %s are counted, %v of them before the drain", n, job, before[job])
			}
		}
	})
}

// A wake that waits for others keeps its job's series until it is over, and no longer.
func TestAJobThatLeavesTakesItsSeriesAlongOnEachReplica(t *testing.T) {
	simulate(t, herdTable(2, "* * * * *"), func(w *world) {
		for range 3 {
			w.replica(5 * time.Millisecond)
		}
		w.at(70 * time.Second)
		table := herdTable(1, "* * * * *")
		w.reload(table)
		for _, r := range w.replicas {
			w.swap(r, table)
		}
		w.at(80 * time.Second)
		for _, r := range w.replicas {
			text := string(r.exposition())
			if !strings.Contains(text, `job="j0"`) || strings.Contains(text, `job="j1"`) {
				t.Errorf("%s has the series of a job that has left", r.name)
			}
		}
	})
}
