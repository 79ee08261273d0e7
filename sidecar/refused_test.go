package sidecar

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// refuses is a replica whose app is down: its jobs cannot be started.
func refuses(r *replica) { r.work = nil }

// comesBack gives a replica its app back.
func (r *replica) comesBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work = func(context.Context, execute.Run) execute.Result { return execute.Result{Status: execute.Succeeded} }
}

func TestOfFiveAppsTheOneThatIsUpStartsEveryTickOfFortyJobs(t *testing.T) {
	long(t)
	for _, guarantee := range []string{"at-most-once", "at-least-once"} {
		t.Run(guarantee, func(t *testing.T) {
			table := "jobs:\n"
			for i := range 40 {
				table += fmt.Sprintf("  - {name: j%d, schedule: '@every 10s', guarantee: %s, exec: {command: [x]}}\n", i, guarantee)
			}
			simulate(t, table, func(w *world) {
				refused := map[string]map[string]int{} // by replica, by tick
				for i := range 5 {
					if i == 2 { // the others are faster than it
						w.replica(time.Second, func(r *replica) { r.far = 20 * time.Millisecond })
						continue
					}
					w.replica(0, func(r *replica) {
						r.work, r.far = nil, time.Millisecond
						refused[r.name] = map[string]int{}
						r.tries = func(run execute.Run) { refused[r.name][run.Job+" "+stamp(run.Tick)]++ }
					})
				}
				w.at(25 * time.Second)
				for i := range 40 {
					w.each(fmt.Sprintf("j%d", i), 10*time.Second, -50*time.Second, 20*time.Second, 2*time.Second)
				}
				w.expect(0, "missed_total")
				w.expect(0, "runs_total", "not_started")
				w.mu.Lock()
				defer w.mu.Unlock()
				for r, ticks := range refused {
					for tick, n := range ticks {
						if n > 1 && !strings.Contains(tick, ":10:") { // at first they know nothing of each other
							t.Errorf("%s has refused %s %d times", r, tick, n)
						}
					}
				}
			})
		})
	}
}

func TestOfThreeAppsTheOneThatIsUpStartsAJobOfEverySecond(t *testing.T) {
	long(t)
	for _, missed := range []string{"latest", "all", "skip"} {
		t.Run(missed, func(t *testing.T) {
			simulate(t, everySecond(0, missed), func(w *world) {
				for _, c := range []func(*replica){refuses, refuses, func(*replica) {}} {
					w.replica(100*time.Millisecond, c)
				}
				w.at(-50 * time.Second) // when each knows of the others
				before := w.sum("missed_total")
				w.at(3*time.Minute + 500*time.Millisecond)
				w.each("second", time.Second, -49*time.Second, 3*time.Minute, 800*time.Millisecond)
				w.expect(before, "missed_total")
			})
		})
	}
}

func TestAReplicaThatHasJustBegunIsGivenWhatTheOthersRefuse(t *testing.T) {
	long(t)
	for begins := range 6 { // seconds before the minute: at some of them, nobody looks who is there until then
		t.Run(fmt.Sprintf("%ds before the first tick", begins+1), func(t *testing.T) {
			simulate(t, everySecond(0, "latest"), func(w *world) {
				w.replica(0, refuses)
				w.replica(0, refuses)
				w.at(-time.Duration(begins)*time.Second - 1500*time.Millisecond)
				w.replica(0)
				w.at(20*time.Second + 500*time.Millisecond)
				w.each("second", time.Second, -time.Duration(begins)*time.Second, 20*time.Second, 500*time.Millisecond)
			})
		})
	}
}

// tries are when replicas tried in vain to start a job, and which.
type tries struct {
	at []time.Duration
	by []string
}

// refusesTo writes down each try.
func (w *world) refusesTo(all *tries) func(*replica) {
	return func(r *replica) {
		r.work, r.tries = nil, func(execute.Run) {
			all.at = append(all.at, time.Since(w.origin()))
			all.by = append(all.by, r.name)
		}
	}
}

func rare(keys string) string {
	return "\njobs:\n  - {name: rare, schedule: '11 0 * * *', exec: {command: [x]}" + keys + "}\n"
}

func TestWhatNoReplicaCanStartIsTriedInRoundsAndGivenUp(t *testing.T) {
	long(t)
	for retries, total := range map[int]time.Duration{0: 0, 1: time.Second, 5: 31 * time.Second, 8: 183 * time.Second} {
		for _, replicas := range []int{1, 3} {
			t.Run(fmt.Sprintf("startRetries %d, %d replicas", retries, replicas), func(t *testing.T) {
				simulate(t, rare(fmt.Sprintf(", startRetries: %d", retries)), func(w *world) {
					var all tries
					for range replicas {
						w.replica(0, w.refusesTo(&all))
					}
					w.at(total - 200*time.Millisecond)
					if retries > 0 {
						w.expect(0, "runs_total", "not_started")
					}
					w.at(total + time.Second)
					w.expect(1, "runs_total", "not_started")
					w.expect(0, "missed_total")
					if m := w.dueMembers(); len(m) > 0 {
						t.Errorf("the due set still has %q", m)
					}
					round, in, wait := 0, map[string]int{}, time.Second // of the present round: who tried
					for i, at := range all.at {
						if i > 0 && at-all.at[i-1] > 100*time.Millisecond {
							if gap := at - all.at[i-1]; (gap - wait).Abs() > 200*time.Millisecond {
								t.Errorf("round %d began after %s, want %s", round+1, gap, wait)
							}
							round, wait, in = round+1, min(2*wait, mostWait), map[string]int{}
						}
						if in[all.by[i]]++; in[all.by[i]] > 1 {
							t.Errorf("round %d: %s tried twice", round, all.by[i])
						}
					}
					if round != retries {
						t.Errorf("there were %d further rounds, want %d: %v by %v", round, retries, all.at, all.by)
					}
					w.at(20 * time.Minute)
					w.expect(1, "runs_total", "not_started")
				})
			})
		}
	}
}

// oneComesBack has all apps refuse a tick until, after a time, that of one replica is back: of each replica in turn.
func oneComesBack(t *testing.T, keys string, after time.Duration, check func(w *world, back *replica, s []start)) {
	for i := range 3 {
		t.Run(fmt.Sprintf("r%d", i+1), func(t *testing.T) {
			simulate(t, rare(keys), func(w *world) {
				for range 3 {
					w.replica(0, refuses)
				}
				w.at(after)
				w.replicas[i].comesBack()
				w.at(time.Minute)
				check(w, w.replicas[i], w.started("rare")[w.origin()])
			})
		})
	}
}

func TestAnAppThatComesBackBetweenTheRoundsIsFound(t *testing.T) {
	oneComesBack(t, ", startRetries: 3", 1500*time.Millisecond, func(w *world, back *replica, s []start) {
		if len(s) != 1 || s[0].replica != back.name || s[0].at.Sub(w.origin()) > 8*time.Second {
			w.t.Errorf("started as %+v\n%s", s, w.log())
		}
		w.expect(0, "runs_total", "not_started")
	})
}

// refused puts a tick of the origin into the due set that these replicas have refused.
func (w *world) refused(job string, by ...string) {
	w.t.Helper()
	d := lock.Due{Tick: w.origin(), Job: job, Kind: "handover", Attempt: 1, Nonce: "x", Refused: by}
	_, err := w.redis.ZAdd(dueSet, float64(time.Now().UnixMilli()), d.Member())
	w.must(err)
	w.redis.Publish("solotick:{test}:events", "due")
}

// Each replica asks for one due member of a job at a time, and a pause may keep back many.
func TestWhatIsAskedForInAPauseDoesNotWaitForWhatThePauseKeepsBack(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(0)
		w.at(5 * time.Second)
		before := time.Now()
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "minute", "", time.Time{})) })
		w.at(6 * time.Second)
		for n := range 11 {
			tick, asked := w.origin().Add(-time.Duration(n)*time.Hour), before.Add(-time.Second)
			d := lock.Due{Tick: tick, Job: "minute", Kind: "backfill", Attempt: 1, Nonce: fmt.Sprint(n)}
			if n == 10 {
				asked = time.Now()
			}
			_, err := w.redis.ZAdd(dueSet, float64(asked.UnixMilli()), d.Member())
			w.must(err)
		}
		w.redis.Publish("solotick:{test}:events", "due")
		w.at(8 * time.Second)
		if n := len(w.started("minute")); n != 2 {
			t.Errorf("%d ticks were started, want the schedule's and what was asked for\n%s", n, w.log())
		}
	})
}

// full has a second replica whose only slot is taken until it is told otherwise: it takes ticks, and cannot take the
// hourly job's. The first replica's table lacks what takes that slot.
func full(t *testing.T, f func(w *world, first, other *replica, app *fakeApp, done func())) {
	const hourly = oneSlot + gated + "jobs:\n  - {name: hourly, schedule: '0 * * * *', exec: {command: [x]}}\n"
	simulate(t, hourly, func(w *world) {
		first := w.replica(time.Millisecond)
		w.reload(hourly + "  - {name: long, schedule: '5 11 0 * * *', timeout: 1h, exec: {command: [x]}}\n")
		app := &fakeApp{}
		app.ready.Store(true)
		var idle atomic.Bool
		other := w.replica(0, func(r *replica) {
			r.app = app
			r.work = func(ctx context.Context, run execute.Run) execute.Result {
				for run.Job == "long" && !idle.Load() && beat.Sleep(ctx, 100*time.Millisecond) {
					continue
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.at(20 * time.Second)
		if len(w.started("long")) != 1 {
			t.Errorf("the other one's slot is not taken\n%s", w.log())
		}
		f(w, first, other, app, func() { idle.Store(true) })
		idle.Store(true)
		time.Sleep(time.Second)
	})
}

func TestAReplicaLeavesWhatItRefusedToOneThatHasNot(t *testing.T) {
	t.Run("which takes it", func(t *testing.T) {
		full(t, func(w *world, first, other *replica, _ *fakeApp, done func()) {
			w.refused("hourly", first.name)
			w.at(24 * time.Second)
			if s := w.started("hourly"); len(s) > 0 {
				t.Errorf("a replica that had refused the tick started it as %+v", s)
			}
			done()
			w.at(24500 * time.Millisecond)
			if s := w.started("hourly")[w.origin()]; len(s) != 1 || s[0].replica != other.name {
				t.Errorf("started as %+v, want by the other one", s)
			}
		})
	})
	t.Run("which does not come for it", func(t *testing.T) {
		full(t, func(w *world, first, other *replica, _ *fakeApp, _ func()) {
			w.refused("hourly", first.name)
			w.at(27 * time.Second)
			if s := w.started("hourly")[w.origin()]; len(s) != 1 || s[0].replica != first.name ||
				s[0].at.Before(w.origin().Add(20*time.Second+patience)) {
				t.Errorf("started as %+v, want by the one that had refused it, when its patience was over", s)
			}
		})
	})
	for name, c := range map[string]struct {
		end  func(other *replica, app *fakeApp)
		wait time.Duration
	}{
		"which has left":      {func(other *replica, _ *fakeApp) { other.stop() }, 6 * time.Second},
		"which is dead":       {func(other *replica, _ *fakeApp) { other.crash() }, 17 * time.Second},
		"which takes no tick": {func(_ *replica, app *fakeApp) { app.ready.Store(false) }, 12 * time.Second},
	} {
		t.Run("not to one "+name, func(t *testing.T) {
			full(t, func(w *world, first, other *replica, app *fakeApp, done func()) {
				if name == "which has left" {
					done() // else it would drain for its grace
				}
				c.end(other, app)
				w.at(20*time.Second + c.wait)
				w.refused("hourly", first.name)
				w.at(22*time.Second + c.wait)
				if s := w.started("hourly")[w.origin()]; len(s) != 1 || s[0].replica != first.name {
					t.Errorf("started as %+v, want by the one that had refused it\n%s", s, w.log())
				}
			})
		})
	}
}

func TestATimerThatOneAppRefusesIsStartedByAnother(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for _, c := range []func(*replica){refuses, refuses, func(*replica) {}} {
			w.replica(0, c)
		}
		w.at(0)
		var ids []string
		for i := range 50 {
			ids = append(ids, fmt.Sprintf("t%d", i))
			w.setTimer(ids[i], 10*time.Second, "")
		}
		w.at(13 * time.Second)
		for _, id := range ids {
			w.each("timer:"+id, time.Minute, 10*time.Second, 10*time.Second, 2*time.Second)
		}
		if m := w.dueMembers(); len(m) > 0 {
			t.Errorf("the due set still has %q", m)
		}
	})
}

// The last round is one through all replicas, whoever was the last to refuse in the round before it.
func TestTheLastRoundFindsWhicheverAppIsUp(t *testing.T) {
	oneComesBack(t, ", startRetries: 1", 500*time.Millisecond, func(w *world, _ *replica, s []start) {
		if len(s) != 1 {
			w.t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

// A tick that one replica refused is not left for ever to another one whose table lacks the job.
func TestAReplicaWithoutTheJobIsNotWaitedFor(t *testing.T) {
	simulate(t, rare(""), func(w *world) {
		first := w.replica(0, refuses)
		w.reload(noJobs)
		w.replica(0)
		w.at(2 * time.Second)
		first.comesBack()
		w.at(2 * time.Minute)
		if s := w.started("rare")[w.origin()]; len(s) != 1 {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

// TestATickIsNotGivenUpWhileAReplicaThatIsFullCouldStartIt: the other replica's app refuses it, again and again.
func TestATickIsNotGivenUpWhileAReplicaThatIsFullCouldStartIt(t *testing.T) {
	simulate(t, oneSlot+`
jobs:
  - {name: rare, schedule: '12 0 * * *', exec: {command: [x]}}
  - {name: other, schedule: '11 0 * * *', timeout: 1h, exec: {command: [x]}}
`, func(w *world) {
		w.replica(0, refuses)
		w.replica(5 * time.Minute)
		w.at(30 * time.Minute)
		if n := len(w.started("rare")[w.origin().Add(time.Minute)]); n != 1 {
			t.Errorf("started %d times\n%s", n, w.log())
		}
	})
}

// A job that no replica can start fails, also if each tick is overtaken before its rounds are over.
func TestATickThatAllRefusedAndThatIsOvertakenHasFailed(t *testing.T) {
	for _, period := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} {
		t.Run(period.String(), func(t *testing.T) {
			table := fmt.Sprintf("\njobs:\n  - {name: nope, schedule: '@every %s', exec: {command: [x]}}\n", period)
			simulate(t, table, func(w *world) {
				for range 3 {
					w.replica(0, refuses)
				}
				w.at(8*time.Minute + 500*time.Millisecond)
				w.expect(0, "missed_total")
				r := w.replicas[0]
				if n := r.value("ticks_total", "nope", "not_started"); n < float64(8*time.Minute/period) {
					t.Errorf("%v ticks could not be started\n%s", n, w.log())
				}
				// A tick that is given up after a newer one has ended adds nothing to the streak.
				if n := r.value("consecutive_failures", "nope"); n < float64(8*time.Minute/period)/2 || w.sum("failures_total") < n {
					t.Errorf("%v ticks in a row have failed, and %v runs", n, w.sum("failures_total"))
				}
				if due := r.value("success_due_timestamp_seconds", "nope"); due == 0 || due > seconds(w.origin()) {
					t.Errorf("a success is due at %v, want soon after the first tick, before %v", due, seconds(w.origin()))
				}
				e := w.last("nope")
				if e == nil || e.Outcome != "not_started" || !e.Failed || !strings.HasSuffix(e.Detail, "connection refused") {
					t.Errorf("the last run is %+v", e)
				}
			})
		})
	}
}
