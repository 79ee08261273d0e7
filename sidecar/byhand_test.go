package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// A run by hand stays one, whichever replica brings it to its end.

func TestARunByHandThatIsCutShortIsRunAgainAsOne(t *testing.T) {
	for name, c := range map[string]struct {
		keys  string
		pause bool
	}{
		"of a suspended job":       {", suspend: true", false},
		"outside the job's window": {", end: 2000-01-01T00:05:00Z", false},
		"of a paused job":          {"", true},
	} {
		for _, how := range []string{"shutdown", "death"} {
			t.Run(name+", by "+how, func(t *testing.T) {
				simulate(t, "shutdownGrace: 2s\n"+rare(", guarantee: at-least-once, timeout: 1h, lock: {ttl: 6s}"+c.keys), func(w *world) {
					for range 2 {
						w.replica(10 * time.Second)
					}
					w.at(30 * time.Second)
					if c.pause {
						w.must(w.replicas[0].store.Pause(w.t.Context(), "rare", "", time.Time{}))
					}
					due, err := w.replicas[0].store.Trigger(w.t.Context(), "rare", uuid.NewString())
					w.must(err)
					w.at(33 * time.Second)
					first := w.holder("rare", due.Tick.Sub(w.origin()))
					if how == "death" {
						first.crash()
					} else {
						first.stop()
					}
					w.at(time.Minute)
					s := w.started("rare")[due.Tick]
					if len(s) != 2 || s[1].run.Kind != kindManual || s[1].replica == s[0].replica || s[1].run.Attempt <= s[0].run.Attempt {
						t.Errorf("started as %+v\n%s", s, w.log())
					}
					if c.pause {
						w.expect(2, "runs_total", "succeeded") // with the tick before the pause
					} else {
						w.expect(1, "runs_total", "succeeded")
					}
				})
			})
		}
	}
}

func TestABackfillThatIsCutShortIsRunAgainAsOne(t *testing.T) {
	simulate(t, "shutdownGrace: 2s\n"+rare(", guarantee: at-least-once, timeout: 1h, suspend: true"), func(w *world) {
		for range 2 {
			w.replica(10 * time.Second)
		}
		w.at(30 * time.Second)
		tick := w.origin().AddDate(0, 0, -1)
		_, err := w.replicas[0].store.Backfill(w.t.Context(), "rare", []time.Time{tick}, uuid.NewString(), false)
		w.must(err)
		w.at(33 * time.Second)
		w.holder("rare", tick.Sub(w.origin())).stop()
		w.at(time.Minute)
		if s := w.started("rare")[tick]; len(s) != 2 || s[1].run.Kind != kindBackfill || s[0].run.Key != "" {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

// A tick that an operator has done again gets a key of its own. It keeps that key on whichever replica it runs, also while
// the job is paused. Its kind is that of every backfill.
func TestABackfillAnewHasAKeyOfItsOwnWhereverItIsRun(t *testing.T) {
	simulate(t, "shutdownGrace: 2s\n"+rare(", guarantee: at-least-once, timeout: 1h, lock: {ttl: 6s}"), func(w *world) {
		for range 3 {
			w.replica(10 * time.Second)
		}
		refuses := w.replicas[0]
		refuses.mu.Lock()
		refuses.work = nil // hands the tick over
		refuses.mu.Unlock()
		w.at(30 * time.Second)
		day := w.origin().AddDate(0, 0, -1)
		id := uuid.NewString()
		w.operator(func(s *service.Store) {
			w.must(s.Pause(w.t.Context(), "rare", "a test", time.Time{}))
			if n, err := s.Backfill(w.t.Context(), "rare", []time.Time{day}, id, true); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		})
		w.at(33 * time.Second)
		w.holder("rare", day.Sub(w.origin())).crash()
		w.at(2 * time.Minute)
		runs := w.started("rare")[day]
		if len(runs) != 2 {
			t.Fatalf("started as %+v\n%s", runs, w.log())
		}
		for _, s := range runs {
			if s.run.Kind != kindBackfill || s.run.Key != id[:8] {
				t.Errorf("started as %+v, want the key %s", s.run, id[:8])
			}
		}
		entries, err := refuses.store.History(w.t.Context(), "rare", 100)
		w.must(err)
		for _, e := range entries {
			if e.Tick.Before(w.origin()) && e.Kind != kindBackfill {
				t.Errorf("the history has the kind %q", e.Kind)
			}
		}
	})
}

// The app tells attempts of one tick apart by their numbers, wherever they are made.
func TestNoNumberOfAnAttemptComesTwice(t *testing.T) {
	for _, how := range []string{"death", "shutdown"} {
		for _, kind := range []string{kindSchedule, kindManual} {
			t.Run(kind+", "+how, func(t *testing.T) {
				table := "shutdownGrace: 1s\n" +
					rare(", guarantee: at-least-once, timeout: 1h, lock: {ttl: 6s}, retry: {limit: 5, backoff: 1s, maxBackoff: 1s}")
				simulate(t, table, func(w *world) {
					seen := map[int]int{}
					last, rises := 0, true
					tick := w.origin()
					if kind == kindManual {
						tick = time.Time{}
					}
					var dying *replica
					began := make(chan *replica, 10)
					work := func(r *replica) {
						r.work = func(ctx context.Context, run execute.Run) execute.Result {
							w.mu.Lock()
							if tick.IsZero() && run.Kind == kindManual {
								tick = run.Tick
							}
							if !run.Tick.Equal(tick) {
								w.mu.Unlock()
								return execute.Result{Status: execute.Succeeded}
							}
							seen[run.Attempt]++
							n := len(seen)
							rises = rises && run.Attempt > last
							last = run.Attempt
							w.mu.Unlock()
							if n == 3 || n == 5 { // the replica is ended in this one
								began <- r
								<-ctx.Done()
								return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
							}
							if n == 8 {
								return execute.Result{Status: execute.Succeeded}
							}
							return execute.Result{Status: execute.Failed, Code: 1, Err: errors.New("no")}
						}
					}
					for range 3 {
						w.replica(0, work)
					}
					if kind == kindManual {
						w.at(10 * time.Second)
						_, err := w.replicas[0].store.Trigger(w.t.Context(), "rare", uuid.NewString())
						w.must(err)
					}
					for range 2 {
						dying = <-began
						time.Sleep(time.Second)
						if how == "death" {
							dying.crash()
						} else {
							dying.stop()
						}
					}
					w.at(2 * time.Minute)
					w.mu.Lock()
					defer w.mu.Unlock()
					if len(seen) != 8 || !rises {
						t.Errorf("the app saw the attempts %v", seen)
					}
					for number, times := range seen {
						if times > 1 {
							t.Errorf("attempt %d came %d times", number, times)
						}
					}
				})
			})
		}
	}
}

// A trigger's id is remembered however many other requests come after it.
func TestATriggerThatIsAskedForAgainAfterManyOthersRunsOnce(t *testing.T) {
	simulate(t, rare(""), func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(10 * time.Second)
		id := uuid.NewString()
		first, err := r.store.Trigger(w.t.Context(), "rare", id)
		w.must(err)
		for i := range 20 {
			w.at(time.Duration(11+i) * time.Second)
			switch i % 3 {
			case 0:
				_, err = r.store.Trigger(w.t.Context(), "rare", uuid.NewString())
			case 1:
				err = r.store.Pause(w.t.Context(), "rare", fmt.Sprint(i), time.Time{})
			case 2:
				_, err = r.store.Resume(w.t.Context(), "rare")
			}
			w.must(err)
		}
		again, err := r.store.Trigger(w.t.Context(), "rare", id)
		w.must(err)
		w.at(40 * time.Second)
		if s := w.started("rare")[first.Tick]; len(s) != 1 || !again.Tick.Equal(first.Tick) {
			t.Errorf("asked for at %s, and again at %s: started as %+v", stamp(first.Tick), stamp(again.Tick), s)
		}
		w.expect(1+1+7, "fires_total")
	})
}
