package lock_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
)

func fmtInt(n int64) string { return strconv.FormatInt(n, 10) }

// nothing is the history entry of a test.
func nothing(lock.Record) lock.Entry { return lock.Entry{} }

// looks is what one look sees of the runs.
func (r *replica) looks() []lock.Running {
	r.w.Helper()
	seen, err := r.Look(r.w.Context(), 100)
	r.w.must(err)
	return seen.Runs
}

// unchanged watches for d and returns what has not moved.
func (r *replica) unchanged(watch *lock.Watcher, d time.Duration) []lock.Running {
	r.w.Helper()
	ttl := func(string) time.Duration { return r.w.ttl }
	if old := watch.Unchanged(r.looks(), ttl); len(old) != 0 {
		r.w.Fatalf("unchanged at first sight: %v", old)
	}
	r.w.pass(d)
	return watch.Unchanged(r.looks(), ttl)
}

// reaps watches for a whole ttl, and takes over n runs.
func (r *replica) reaps(n int) {
	r.w.Helper()
	watch := r.NewWatcher()
	old := r.unchanged(watch, r.w.ttl)
	if len(old) != n {
		r.w.Errorf("%d runs unchanged, want %d", len(old), n)
	}
	for _, run := range old {
		if _, ok, err := watch.Reap(r.w.Context(), run, nothing); err != nil || !ok {
			r.w.Errorf("reap: %v, %v", ok, err)
		}
	}
}

func TestOneWatcherOfThreeTakesADeadRunOver(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		c := a.claim(1)
		c.Attempt, c.Retries, c.Rounds, c.Deaths, c.Kind, c.Replica = 2, 5, 3, 1, "catchup", "a.b-c"
		claimed := w.now()
		l, won := a.wins(c)
		var old [3][]lock.Running
		var watch [3]*lock.Watcher
		var by [3]*replica
		for i := range watch {
			by[i] = w.replica(fmt.Sprint("watcher", i))
			watch[i] = by[i].NewWatcher()
			watch[i].Unchanged(by[i].looks(), func(string) time.Duration { return w.ttl })
		}
		w.pass(w.ttl)
		reaped := 0
		for i := range watch {
			old[i] = watch[i].Unchanged(by[i].looks(), func(string) time.Duration { return w.ttl })
			if len(old[i]) != 1 {
				w.Fatalf("watcher %d: %v", i, old[i])
			}
		}
		for i := range watch {
			rec, ok, err := watch[i].Reap(w.Context(), old[i][0], func(lock.Record) lock.Entry {
				return lock.Entry{Outcome: "interrupted"}
			})
			w.must(err)
			if !ok {
				continue
			}
			reaped++
			want := lock.Record{Tick: w.tick(1), Token: l.Token, Prev: won.Prev, Policy: lock.Forbid, TTL: w.ttl, Kind: "catchup",
				Attempt: 2, Retries: 5, Rounds: 3, Deaths: 1, Replica: "a.b-c"}
			if since := rec.Claimed.Sub(claimed); !rec.Tick.Equal(want.Tick) || !rec.Prev.Equal(want.Prev) || since < -time.Millisecond ||
				since > w.ttl/2 {
				w.Errorf("record: %+v", rec)
			}
			rec.Tick, rec.Prev, rec.Claimed = want.Tick, want.Prev, want.Claimed
			if rec != want {
				w.Errorf("record: %+v, want %+v", rec, want)
			}
		}
		if reaped != 1 {
			w.Errorf("reaped %d times", reaped)
		}
		if w.runs() != 0 || w.owner() != "" {
			w.Errorf("%s", w.dump())
		}
		if n, _ := w.admin.XLen(w.Context(), "solotick:{svc}:runs").Result(); n != 1 {
			w.Errorf("%d history entries", n)
		}
	})
}

func TestRunThatIsExtendedIsNotTakenOver(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		watch := b.NewWatcher()
		old := b.unchanged(watch, w.ttl)
		if len(old) != 1 {
			w.Fatalf("unchanged: %v", old)
		}
		w.must(l.Verify(w.Context())) // the holder was only slow
		if _, ok, err := watch.Reap(w.Context(), old[0], nothing); ok || err != nil {
			w.Fatalf("reap: %v, %v", ok, err)
		}
		if old := watch.Unchanged(b.looks(), func(string) time.Duration { return w.ttl }); len(old) != 0 {
			w.Errorf("unchanged although extended: %v", old)
		}
		a.finishes(l, 0)
	})
}

func TestRunThatTheWatcherHasNotSeenForAWholeTTLIsNotTakenOver(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		b.suspend(time.Hour) // its clock is not at zero
		c := a.claim(1)
		a.wins(c)
		watch := b.NewWatcher()
		runs := b.looks()
		if len(runs) != 1 || runs[0].Job != job || runs[0].Run != c.Run {
			w.Fatalf("look: %+v", runs)
		}
		if _, ok, err := watch.Reap(w.Context(), runs[0], nothing); ok || err != nil {
			w.Fatalf("a run never seen before was reaped: %v, %v", ok, err)
		}
		// A table that gives the job a shorter ttl than the run has does not count: the run's own record does.
		short := func(string) time.Duration { return time.Millisecond }
		watch.Unchanged(runs, short)
		w.pass(10 * time.Millisecond)
		if old := watch.Unchanged(b.looks(), short); len(old) != 1 {
			w.Fatalf("unchanged: %v", old)
		}
		if _, ok, err := watch.Reap(w.Context(), runs[0], nothing); ok || err != nil {
			w.Fatalf("reaped before its ttl was over: %v, %v", ok, err)
		}
	})
}

func TestStepOfRedisClockTakesNothingOver(t *testing.T) {
	inBubble(t, func(w *world) { // only miniredis' clock can be set
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		watch := b.NewWatcher()
		ttl := func(string) time.Duration { return w.ttl }
		watch.Unchanged(b.looks(), ttl)
		w.mini.SetTime(time.Now().Add(time.Hour)) // every lease has ended, if Redis' clock is asked
		w.mini.FastForward(time.Hour)
		time.Sleep(time.Second)
		if old := watch.Unchanged(b.looks(), ttl); len(old) != 0 {
			w.Errorf("unchanged: %v", old)
		}
		b.loses(b.claim(2), lock.Overlap)
		if w.owner() != "" {
			w.Fatalf("the key lives: %q", w.owner())
		}
		w.must(l.Verify(w.Context()))
		if w.owner() != l.Run() {
			w.Errorf("the extension did not restore its own key: %q", w.owner())
		}
	})
}

func TestEntryWithoutARecordIsTakenOver(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		b := w.replica("b")
		w.must(w.admin.Do(w.Context(), "ZADD", running, 12345, "half-written "+job).Err())
		watch := b.NewWatcher()
		old := b.unchanged(watch, w.ttl)
		if len(old) != 1 {
			w.Fatalf("unchanged: %v", old)
		}
		if _, ok, err := watch.Reap(w.Context(), old[0], nothing); ok || err != nil { // nothing ran, so nothing is counted
			w.Fatalf("reap: %v, %v", ok, err)
		}
		if w.runs() != 0 {
			w.Error("the entry stayed")
		}
	})
}

func TestDueMembersAreSeenWhenTheirTimeHasComeAndDroppedOnce(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		_, err := l.Handover(w.Context(), w.ttl, nil)
		w.must(err)
		w.must(w.admin.Do(w.Context(), "ZADD", dueSet, 1, "written by another version").Err())
		seen, err := b.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 0 {
			w.Fatalf("due too early: %+v, %v", seen.Due, err)
		}
		last, err := w.admin.ZRangeWithScores(w.Context(), dueSet, -1, -1).Result()
		if err != nil || seen.Next.UnixMilli() != int64(last[0].Score) {
			w.Errorf("the next comes due at %s, want %v, %v", seen.Next, last, err)
		}
		w.pass(w.ttl)
		seen, err = b.Look(w.Context(), 10)
		ds := seen.Due
		if err != nil || len(ds) != 1 || ds[0].Nonce != l.Run() || !seen.Next.IsZero() {
			w.Fatalf("due: %+v, next %s, %v", ds, seen.Next, err)
		}
		for _, want := range []bool{true, false} {
			if got, _, err := b.Drop(w.Context(), ds[0], false); err != nil || got != want {
				w.Errorf("drop: %v, %v; want %v", got, err, want)
			}
		}
	})
}

func TestNothingIsSeenAsDueBeforeItsTimeHoweverUnsureTheClock(t *testing.T) {
	inBubble(t, func(w *world) {
		b := w.replica("b")
		w.must(b.Sync(w.Context()))
		w.pass(time.Hour) // in which clocks may have parted by a third of a second
		first, second := w.now().Add(100*time.Millisecond).UnixMilli(), w.now().Add(time.Minute).UnixMilli()
		for _, at := range []int64{first, second} {
			w.must(w.admin.Do(w.Context(), "ZADD", dueSet, at, fmtInt(at)+" "+job+" catchup 1 0 0 nonce").Err())
		}
		for _, want := range []struct {
			due  int
			next int64
		}{{0, first}, {1, second}} {
			seen, err := b.Look(w.Context(), 10)
			if err != nil || len(seen.Due) != want.due || seen.Next.UnixMilli() != want.next {
				w.Errorf("%+v, %v, want %+v", seen, err, want)
			}
			w.pass(100 * time.Millisecond)
		}
	})
}

func TestALookTellsWhenRedisMemoryBegan(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		if seen, err := a.Look(w.Context(), 10); !seen.Born.IsZero() || err != nil {
			w.Errorf("born before it was registered: %v, %v", seen.Born, err)
		}
		got, err := a.Register(w.Context(), lock.TimerJobs, "")
		w.must(err)
		if seen, err := a.Look(w.Context(), 10); !seen.Born.Equal(got.Born) || err != nil {
			w.Errorf("born %v, %v, and registered as %v", seen.Born, err, got.Born)
		}
		w.must(w.admin.FlushAll(w.Context()).Err())
		if seen, err := a.Look(w.Context(), 10); !seen.Born.IsZero() || err != nil {
			w.Errorf("born %v, %v in a Redis that has lost its data", seen.Born, err)
		}
	})
}
