package sidecar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAPausedJobStandsStillAndHasMissedNothing(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(30 * time.Second)
		store := w.replicas[0].store
		w.must(store.Pause(w.t.Context(), "minute", "deploying", time.Time{}))
		w.at(3*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule")
		w.expect(9, "skips_total", "paused")
		ok, err := store.Resume(w.t.Context(), "minute")
		if w.must(err); !ok {
			t.Error("there was no pause to end")
		}
		w.at(4*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule", "4m0s schedule")
		w.expect(0, "missed_total")
	})
}

// Somebody has paused a job for good reason. An incident in which all jobs are paused, and its end, must not let it
// run.
func TestTheEndOfThePauseOfAllJobsLetsNoJobRunThatIsPausedByItself(t *testing.T) {
	long(t)
	for name, c := range map[string]struct {
		until time.Duration // the end of the pause of all jobs; 0 = somebody lifts it
		first bool          // it is the first of the two
	}{
		"lifted": {}, "lifted, and set first": {first: true},
		"over": {until: 3 * time.Minute}, "over, and set first": {until: 3 * time.Minute, first: true},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, minutely, func(w *world) {
				for range 3 {
					w.replica(time.Second)
				}
				store, ctx := w.replicas[0].store, w.t.Context()
				end := time.Time{}
				if c.until > 0 {
					end = w.origin().Add(c.until)
				}
				own := func() { w.must(store.Pause(ctx, "minute", "database migration", time.Time{})) }
				forAll := store.As(service.Author{All: "a command"})
				all := func() { w.must(forAll.Pause(ctx, "minute", "incident", end)) }
				if c.first {
					own, all = all, own
				}
				w.at(30 * time.Second)
				own()
				w.at(90 * time.Second)
				all()
				w.at(2*time.Minute + 30*time.Second)
				if c.until == 0 {
					_, err := forAll.Resume(ctx, "minute")
					w.must(err)
				}
				w.at(5*time.Minute + 30*time.Second)
				w.expectOrder("minute", "0s schedule")
				_, err := store.Resume(ctx, "minute")
				w.must(err)
				w.at(6*time.Minute + 30*time.Second)
				w.expectOrder("minute", "0s schedule", "6m0s schedule")
				w.expect(0, "missed_total")
			})
		})
	}
}

func TestAPauseEndsByItself(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(30 * time.Second)
		w.must(w.replicas[0].store.Pause(w.t.Context(), "minute", "", w.origin().Add(2*time.Minute)))
		w.at(3*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule", "2m0s schedule", "3m0s schedule")
		w.expect(3, "skips_total", "paused")
		w.expect(0, "missed_total")
	})
}

func TestATriggeredJobRunsOnceAtOnceAndTakesNoTick(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(30 * time.Second)
		store := w.replicas[0].store
		w.must(store.Pause(w.t.Context(), "minute", "by hand only", time.Time{}))
		due, err := store.Trigger(w.t.Context(), "minute", uuid.NewString())
		w.must(err)
		w.at(40 * time.Second)
		s := w.started("minute")[due.Tick]
		if len(s) != 1 || s[0].run.Kind != kindManual || s[0].at.Sub(w.origin()) > 30*time.Second+100*time.Millisecond {
			t.Fatalf("started as %+v\n%s", s, w.log())
		}
		_, err = store.Resume(w.t.Context(), "minute")
		w.must(err)
		w.at(65 * time.Second)
		if n := len(w.started("minute")[w.origin().Add(time.Minute)]); n != 1 {
			t.Errorf("the next tick of the table was started %d times", n)
		}
		w.expect(0, "missed_total")
	})
}

func TestABackfillRunsInOrder(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(10 * time.Second)
		var ticks []time.Time
		for i := range 5 {
			ticks = append(ticks, w.origin().Add(time.Duration(i-100)*time.Minute))
		}
		n, err := w.replicas[0].store.Backfill(w.t.Context(), "minute", ticks, uuid.NewString(), false)
		if w.must(err); n != 5 {
			t.Errorf("%d were added", n)
		}
		w.at(50 * time.Second)
		w.expectOrder("minute", "0s schedule", "-1h40m0s backfill", "-1h39m0s backfill", "-1h38m0s backfill", "-1h37m0s backfill", "-1h36m0s backfill")
		w.at(65 * time.Second)
		if n := len(w.started("minute")[w.origin().Add(time.Minute)]); n != 1 {
			t.Errorf("the next tick of the table was started %d times", n)
		}
		w.expect(0, "missed_total")
	})
}

func TestHeartbeatsSayWhatAReplicaIs(t *testing.T) {
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}, suspend: true}
`, func(w *world) {
		w.replica(time.Second)
		r := w.replica(time.Second, func(r *replica) { r.skew = 2 * time.Second })
		w.at(30 * time.Second)
		all, err := r.store.Replicas(w.t.Context())
		w.must(err)
		if len(all) != 2 || all[1].Name != "r2" {
			t.Fatalf("%+v", all)
		}
		b := all[1]
		if b.Version != "test" || b.Table != w.table.Hash || b.Ready != "" || b.Offset.Round(10*time.Millisecond) != -2*time.Second ||
			time.Since(b.Seen) > 6*time.Second {
			t.Errorf("%+v", b)
		}
		want := service.Skip{Tick: w.origin(), Reason: "suspended", At: b.Skips["minute"].At}
		if s := b.Skips["minute"]; s != want || s.At.Sub(w.origin()).Abs() > time.Second {
			t.Errorf("the last skip is %+v, want %+v", s, want)
		}
		r.stop()
		<-r.done
		if all, err = w.replicas[0].store.Replicas(w.t.Context()); len(all) != 1 {
			t.Errorf("after the second replica's end: %+v, %v", all, err)
		}
	})
}

// TestAReplicaReportsWithinASecondThatItIsReady: two heartbeats are five seconds apart, and an operator who asks after
// a start must not be told that no replica takes ticks.
func TestAReplicaReportsWithinASecondThatItIsReady(t *testing.T) {
	simulate(t, "ready: {tcp: '127.0.0.1:1', interval: 100ms}\n"+minutely, func(w *world) {
		app := &fakeApp{}
		app.ready.Store(true)
		r := w.replica(time.Second, func(r *replica) { r.app = app })
		says := func(at time.Duration, ready bool) {
			t.Helper()
			w.at(at)
			all, err := r.store.Replicas(w.t.Context())
			if err != nil || len(all) != 1 || (all[0].Ready == "") != ready {
				t.Errorf("after %s the heartbeats are %+v, %v; want ready: %t", at, all, err, ready)
			}
		}
		says(2500*time.Millisecond, true)
		w.at(31 * time.Second)
		app.ready.Store(false)
		says(32500*time.Millisecond, false)
		app.ready.Store(true)
		says(34*time.Second, true)
	})
}

func TestTheHistoryHasEveryRun(t *testing.T) {
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}}
  - {name: everywhere, schedule: "* * * * *", guarantee: every-replica, exec: {command: [x]}}
`, func(w *world) {
		w.replica(time.Second)
		w.replica(time.Second)
		w.at(2*time.Minute + 30*time.Second)
		entries, err := w.replicas[0].store.Search(w.t.Context(), service.Search{Jobs: []string{"minute", "everywhere"}, Limit: 100})
		w.must(err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Tick.Sub(w.origin()).String()+" "+e.Job+" "+e.Outcome)
			if e.Took != time.Second || e.Attempt != 1 || e.Replica == "" || e.Run == "" || e.Kind == "" {
				t.Errorf("%+v", e)
			}
		}
		slices.Sort(got)
		want := []string{"0s everywhere succeeded", "0s everywhere succeeded", "0s minute succeeded", "1m0s everywhere succeeded",
			"1m0s everywhere succeeded", "1m0s minute succeeded", "2m0s everywhere succeeded", "2m0s everywhere succeeded", "2m0s minute succeeded"}
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "-") })
		if !slices.Equal(got, want) {
			t.Errorf("the history is %q", got)
		}
	})
}

// TestTheHistorySaysWhyARunFailed: in one line, with the reason among what the job said.
func TestTheHistorySaysWhyARunFailed(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(0, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				return execute.Result{Status: execute.Failed, Code: 3, Err: errors.New("the command exited with code 3"), Reason: "no\x1b[31m disk"}
			}
		})
		w.at(30 * time.Second)
		entries, err := r.store.History(w.t.Context(), "minute", 100)
		w.must(err)
		if got := entries[0].Detail; got != "the command exited with code 3: no [31m disk" {
			t.Errorf("the history says %q", got)
		}
	})
}

func TestAHeartbeatHasARefusedTableInShort(t *testing.T) {
	for table, want := range map[string]string{
		"service: x\njobs: []\nlsten: a\n":                        `table.yaml:3:1: unknown key "lsten"`,
		"service: x\njobs: []\nlsten: a\nclok: x\n":               `table.yaml:3:1: unknown key "lsten", and 1 more problem`,
		"service: x\njobs: []\nlsten: a\nclok: x\nmaxRuning: 1\n": `table.yaml:3:1: unknown key "lsten", and 2 more problems`,
	} {
		_, err := config.Parse("/etc/solotick/table.yaml", []byte(table), func(string) (string, bool) { return "", false })
		if got := firstProblem(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := firstProblem(errors.New("no such file")); got != "no such file" {
		t.Errorf("%q", got)
	}
}

// A triggered run that cannot be started here goes on to others as what it is, whatever ticks come meanwhile.
func TestATriggeredRunIsHandedOnAsSuch(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(0, func(r *replica) { r.work = nil })
		w.at(59 * time.Second)
		due, err := w.replicas[0].store.Trigger(w.t.Context(), "minute", uuid.NewString())
		w.must(err)
		w.at(60500 * time.Millisecond) // past the next tick
		w.replica(0)
		w.at(85 * time.Second)
		if s := w.started("minute")[due.Tick]; len(s) != 1 || s[0].run.Kind != kindManual || s[0].replica != "r2" {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

// However much waits, what is behind it is seen.
func TestABacklogHidesNothing(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: hourly, schedule: "0 * * * *", exec: {command: [x]}}
  - {name: other, schedule: "0 * * * *", exec: {command: [x]}}
`, func(w *world) {
		r := w.replica(10 * time.Second)
		w.at(10 * time.Second)
		var ticks []time.Time
		for i := range service.MaxBackfill {
			ticks = append(ticks, w.origin().Add(time.Duration(i-3000)*time.Hour))
		}
		for range 2 {
			_, err := r.store.Backfill(w.t.Context(), "hourly", ticks, uuid.NewString(), false)
			w.must(err)
		}
		w.at(20 * time.Second)
		due, err := r.store.Trigger(w.t.Context(), "other", uuid.NewString())
		w.must(err)
		w.at(25 * time.Second)
		if s := w.started("other")[due.Tick]; len(s) != 1 {
			t.Errorf("the other job was started %d times", len(s))
		}
	})
}

func TestATriggeredRunDoesNotWaitForJitter(t *testing.T) {
	simulate(t, `
jobs:
  - {name: ten, schedule: "*/10 * * * *", jitter: 5m, exec: {command: [x]}}
`, func(w *world) {
		w.replica(time.Second)
		w.at(30 * time.Second)
		due, err := w.replicas[0].store.Trigger(w.t.Context(), "ten", uuid.NewString())
		w.must(err)
		w.at(9 * time.Minute)
		if s := w.started("ten")[due.Tick]; len(s) != 1 || s[0].at.Sub(w.origin()) > 30*time.Second+100*time.Millisecond {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

// A replica with an older table does not throw away what is due for a job that it lacks.
func TestABackfillOfAJobThatSomeLackIsRun(t *testing.T) {
	long(t)
	simulate(t, minutely, func(w *world) {
		w.replica(time.Second)
		w.at(10 * time.Second)
		w.reload(minutely + `  - {name: fresh, schedule: "0 3 * * *", exec: {command: [x]}}
`)
		r := w.replica(20 * time.Second)
		w.at(20 * time.Second)
		var ticks []time.Time
		for i := range 5 {
			ticks = append(ticks, w.origin().AddDate(0, 0, i-10))
		}
		_, err := r.store.Backfill(w.t.Context(), "fresh", ticks, uuid.NewString(), false)
		w.must(err)
		w.at(10 * time.Minute)
		if n := len(w.order("fresh")); n != 5 {
			t.Errorf("%d of 5 were run", n)
		}
	})
}

// A due tick that waits for the end of a pause is not asked for again and again, and soon after that end.
func TestADueTickWaitsForTheEndOfAPause(t *testing.T) {
	simulate(t, policy("concurrencyPolicy: Queue, timeout: 10m"), func(w *world) {
		w.at(-30 * time.Second)
		w.replica(90 * time.Second)
		w.at(70 * time.Second)
		w.must(w.replicas[0].store.Pause(w.t.Context(), "minute", "", w.origin().Add(110*time.Second)))
		w.at(118 * time.Second)
		w.expectOrder("minute", "0s schedule", "1m0s catchup")
		if s := w.started("minute")[w.origin().Add(time.Minute)]; len(s) != 1 || s[0].at.Sub(w.origin()) > 112*time.Second {
			t.Errorf("started as %+v", s)
		}
		if n := w.sum("skips_total", "paused"); n > 2 {
			t.Errorf("asked for %v times in the pause", n)
		}
	})
}
