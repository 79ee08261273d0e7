package lock_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func fmtInt(n int64) string { return strconv.FormatInt(n, 10) }

// interrupted is what these cases write down of a run that is taken over.
func interrupted(lock.Record) lock.Ending { return lock.Ending{Entry: "interrupted"} }

// A claim is told with its lease: a watcher need not have seen it, but for a renewal since.
func TestAWatcherGoesByTheLeaseThatItWasToldOf(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		told := lock.Heard{Running: b.Looks()[0], Since: time.Since(w.Start)}
		b.Suspend(w.TTL)
		watch := func() func([]lock.Running) int {
			watcher := b.NewWatcher()
			watcher.Hear(told)
			return func(runs []lock.Running) int {
				return len(watcher.Unchanged(runs, func(string) time.Duration { return w.TTL }))
			}
		}
		if n := watch()(b.Looks()); n != 1 {
			w.Errorf("%d runs are overdue a ttl after one was told of", n)
		}
		w.Pass(10 * time.Millisecond)
		w.Must(l.Verify(w.Context()))
		overdue := watch()
		if n := overdue(b.Looks()); n != 0 {
			w.Errorf("%d runs are overdue at the first sight of a new lease", n)
		}
		if n := overdue([]lock.Running{told.Running}); n != 0 { // a failover has forgotten the renewal
			w.Errorf("%d runs are overdue at the first sight of a lease that has come back", n)
		}
	})
}

func TestOneWatcherOfThreeTakesADeadRunOver(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		c := a.Claim(1)
		c.Attempt, c.Retries, c.Rounds, c.Deaths, c.Kind, c.Replica = 2, 5, 3, 1, "catchup", "a.b-c"
		claimed := w.Now()
		l, won := a.Wins(c)
		var old [3][]lock.Running
		var watch [3]*lock.Watcher
		var by [3]*redisworld.Replica
		for i := range watch {
			by[i] = w.Replica(fmt.Sprint("watcher", i))
			watch[i] = by[i].NewWatcher()
			watch[i].Unchanged(by[i].Looks(), func(string) time.Duration { return w.TTL })
		}
		w.Pass(w.TTL)
		reaped := 0
		for i := range watch {
			old[i] = watch[i].Unchanged(by[i].Looks(), func(string) time.Duration { return w.TTL })
			if len(old[i]) != 1 {
				w.Fatalf("watcher %d: %v", i, old[i])
			}
		}
		if _, ok, err := watch[0].Reap(w.Context(), old[0][0], func(lock.Record) lock.Ending { return lock.Ending{} }); ok || err == nil {
			w.Errorf("reaped without an entry: %v, %v", ok, err)
		}
		for i := range watch {
			rec, ok, err := watch[i].Reap(w.Context(), old[i][0], interrupted)
			w.Must(err)
			if !ok {
				continue
			}
			reaped++
			want := lock.Record{Tick: w.Tick(1), Token: l.Token, Prev: won.Prev, Policy: lock.Forbid, TTL: w.TTL, Kind: "catchup",
				Attempt: 2, Retries: 5, Rounds: 3, Deaths: 1, Replica: "a.b-c"}
			if since := rec.Claimed.Sub(claimed); !rec.Tick.Equal(want.Tick) || !rec.Prev.Equal(want.Prev) || since < -time.Millisecond ||
				since > w.TTL/2 {
				w.Errorf("record: %+v", rec)
			}
			rec.Tick, rec.Prev, rec.Claimed = want.Tick, want.Prev, want.Claimed
			if rec.Record != want {
				w.Errorf("record: %+v, want %+v", rec, want)
			}
		}
		if reaped != 1 {
			w.Errorf("reaped %d times", reaped)
		}
		if w.Runs() != 0 || w.Owner() != "" {
			w.Errorf("%s", w.Dump())
		}
		if n, _ := w.Admin.XLen(w.Context(), "solotick:{svc}:history:"+job).Result(); n != 1 {
			w.Errorf("%d history entries", n)
		}
	})
}

func TestAWatcherReadsThatARunWasCancelled(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		for n, cancelled := range []bool{false, true} {
			l, _ := a.Wins(a.Claim(n + 1))
			if cancelled {
				_, err := b.Service.Cancel(w.Context(), job, []string{l.Run()}, uuid.NewString())
				w.Must(err)
			}
			watch := b.NewWatcher()
			_, ok, err := watch.Reap(w.Context(), b.Unchanged(watch, w.TTL)[0], func(rec lock.Record) lock.Ending {
				return lock.Ending{Entry: fmt.Sprint("cancelled: ", rec.Cancelled)}
			})
			if want := fmt.Sprint("cancelled: ", cancelled); !ok || err != nil || w.Field("done") != want {
				w.Errorf("%t, %v, %q, want %q", ok, err, w.Field("done"), want)
			}
		}
	})
}

func TestRunThatIsExtendedIsNotTakenOver(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		watch := b.NewWatcher()
		old := b.Unchanged(watch, w.TTL)
		if len(old) != 1 {
			w.Fatalf("unchanged: %v", old)
		}
		w.Must(l.Verify(w.Context())) // the holder was only slow
		if _, ok, err := watch.Reap(w.Context(), old[0], interrupted); ok || err != nil {
			w.Fatalf("reap: %v, %v", ok, err)
		}
		if old := watch.Unchanged(b.Looks(), func(string) time.Duration { return w.TTL }); len(old) != 0 {
			w.Errorf("unchanged although extended: %v", old)
		}
		a.Finishes(l, 0)
	})
}

func TestRunThatTheWatcherHasNotSeenForAWholeTTLIsNotTakenOver(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		b.Suspend(time.Hour) // its clock is not at zero
		c := a.Claim(1)
		a.Wins(c)
		watch := b.NewWatcher()
		runs := b.Looks()
		if len(runs) != 1 || runs[0].Job != job || runs[0].Run != c.Run {
			w.Fatalf("look: %+v", runs)
		}
		if _, ok, err := watch.Reap(w.Context(), runs[0], interrupted); ok || err != nil {
			w.Fatalf("a run never seen before was reaped: %v, %v", ok, err)
		}
		// A table that gives the job a shorter ttl than the run has does not count: the run's own record does.
		short := func(string) time.Duration { return time.Millisecond }
		watch.Unchanged(runs, short)
		w.Pass(10 * time.Millisecond)
		if old := watch.Unchanged(b.Looks(), short); len(old) != 1 {
			w.Fatalf("unchanged: %v", old)
		}
		if _, ok, err := watch.Reap(w.Context(), runs[0], interrupted); ok || err != nil {
			w.Fatalf("reaped before its ttl was over: %v, %v", ok, err)
		}
	})
}

func TestStepOfRedisClockTakesNothingOver(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // only miniredis' clock can be set
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		watch := b.NewWatcher()
		ttl := func(string) time.Duration { return w.TTL }
		watch.Unchanged(b.Looks(), ttl)
		w.Mini.SetTime(time.Now().Add(time.Hour)) // every lease has ended, if Redis' clock is asked
		w.Mini.FastForward(time.Hour)
		time.Sleep(time.Second)
		if old := watch.Unchanged(b.Looks(), ttl); len(old) != 0 {
			w.Errorf("unchanged: %v", old)
		}
		b.Loses(b.Claim(2), lock.Overlap)
		if w.Owner() != "" {
			w.Fatalf("the key lives: %q", w.Owner())
		}
		w.Must(l.Verify(w.Context()))
		if w.Owner() != l.Run() {
			w.Errorf("the extension did not restore its own key: %q", w.Owner())
		}
	})
}

func TestEntryWithoutARecordIsTakenOver(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		b := w.Replica("b")
		w.Must(w.Admin.Do(w.Context(), "ZADD", running, 12345, "half-written "+job).Err())
		watch := b.NewWatcher()
		old := b.Unchanged(watch, w.TTL)
		if len(old) != 1 {
			w.Fatalf("unchanged: %v", old)
		}
		if _, ok, err := watch.Reap(w.Context(), old[0], interrupted); ok || err != nil { // nothing ran, so nothing is counted
			w.Fatalf("reap: %v, %v", ok, err)
		}
		if w.Runs() != 0 {
			w.Error("the entry stayed")
		}
	})
}
