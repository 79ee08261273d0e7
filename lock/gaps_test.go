package lock_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// gaps demands that these times are gaps, as an answer tells them: from and to, by turns.
func (w *world) gaps(text string, want ...time.Time) {
	w.Helper()
	got, err := lock.ParseGaps(text)
	w.must(err)
	var all []time.Time
	for _, g := range got {
		all = append(all, g.From, g.To)
	}
	if !slices.EqualFunc(all, want, time.Time.Equal) {
		w.Errorf("the gaps are %v, want %v", all, want)
	}
}

func TestGapsAreReadAsTheyWereWritten(t *testing.T) {
	got, err := lock.ParseGaps("10-25 30-1795197400705 ")
	want := []lock.Interval{{From: time.UnixMilli(10), To: time.UnixMilli(25)}, {From: time.UnixMilli(30), To: time.UnixMilli(1795197400705)}}
	same := func(a, b lock.Interval) bool { return a.From.Equal(b.From) && a.To.Equal(b.To) }
	if err != nil || !slices.EqualFunc(got, want, same) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := lock.ParseGaps(""); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"x", "1", "1-", "1-x 2-3", "-"} {
		if got, err := lock.ParseGaps(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// onEveryLossOfAClaim has a second replica ask for tick 9 behind ticks that nobody has asked for, while a run lives.
func onEveryLossOfAClaim(t *testing.T, policy lock.Policy, play func(w *world, a lock.Answer)) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		a.wins(a.claimUnder(policy, 1))
		if policy == lock.Replace {
			a.loses(a.claimUnder(policy, 2), lock.Queued)
		}
		b.proxy.On(lossy.Script(lock.AcquireSHA), 1, loss)
		c := b.claimUnder(policy, 9)
		c.Known, c.Before = w.tick(1), w.tick(8)
		l, got, err := b.acquire(c)
		if l != nil || err != nil {
			w.Fatalf("%v, %v", l, err)
		}
		play(w, got)
	})
}

func TestTicksMissedBeforeARefusedOneAreInAGapOnceWhateverBecameOfTheReply(t *testing.T) {
	onEveryLossOfAClaim(t, lock.Forbid, func(w *world, got lock.Answer) {
		if got.Code != lock.Overlap {
			w.Errorf("%+v", got)
		}
		w.gaps(got.Gaps, w.tick(1), w.tick(9))
		w.gaps(w.field("gaps"), w.tick(1), w.tick(9))
	})
}

func TestTicksMissedBeforeAQueuedOneAndTheDisplacedOneAreInAGapOnceWhateverBecameOfTheReply(t *testing.T) {
	onEveryLossOfAClaim(t, lock.Replace, func(w *world, got lock.Answer) {
		if got.Code != lock.Queued && got.Code != lock.Waits {
			w.Errorf("%+v", got)
		}
		displaced := []time.Time{w.tick(1), w.tick(3)}
		want := append([]time.Time{w.tick(2), w.tick(9)}, displaced...)
		w.gaps(got.Gaps, want...)
		w.gaps(w.field("gaps"), want...)
	})
}

func TestTicksMissedBeforeAWonOneAreInAGapThatOutlivesItsReplica(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		a.finishes(l, 0)
		c := a.claim(9)
		c.Known, c.Before = w.tick(1), w.tick(8)
		_, won := a.wins(c)
		w.gaps(won.Gaps, w.tick(1), w.tick(9))
		b.reaps(1)                             // a died before it could count
		got := b.loses(b.claim(5), lock.Fired) // and whoever asks next is told
		w.gaps(got.Gaps, w.tick(1), w.tick(9))
	})
}

func TestTicksMissedBeforeAPauseAreInAGap(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		w.must(w.admin.HSet(w.Context(), ledger, "tick", w.tick(-5000).UnixMilli()).Err())
		before := w.now()
		w.must(a.Pause(w.Context(), job, "", time.Time{}))
		w.pass(20 * time.Millisecond)
		_, err := a.Resume(w.Context(), job)
		w.must(err)
		got := a.loses(a.claim(-1000), lock.Fired)
		all, err := lock.ParseGaps(got.Gaps)
		if err != nil || len(all) != 1 || !all[0].From.Equal(w.tick(-5000)) || all[0].To.Sub(before) < -time.Millisecond ||
			all[0].To.After(got.PausedTo) {
			w.Errorf("paused at %s until %s: gaps %v, %v", before, got.PausedTo, all, err)
		}
	})
}

func TestMissedTicksAreCountedOnceOverAllReplicas(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.replica("a")
		c := a.claim(9)
		c.Before = w.tick(8)
		_, won := a.wins(c)
		var counted atomic.Int64
		var all sync.WaitGroup
		for i := range 20 {
			r := w.replica(fmt.Sprint("replica-", i))
			all.Go(func() {
				ours, err := r.Book(w.Context(), job, won.Gaps, 7)
				if err != nil {
					w.Error(err)
				}
				if ours {
					counted.Add(1)
				}
			})
		}
		all.Wait()
		if counted.Load() != 1 || number(w, "missed") != 7 || w.field("gaps") != "" {
			w.Errorf("%d replicas have counted, %s", counted.Load(), w.dump())
		}
	})
}

func TestUnansweredCountIsAskedForAgainAndCountsOnce(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		if _, err := b.Book(w.Context(), "warm", "", 0); err != nil { // Redis knows the script
			w.Fatal(err)
		}
		w.must(w.admin.HSet(w.Context(), ledger, "gaps", "1-3 5-8 ").Err())
		f := a.proxy.On(lossy.Script(lock.BookSHA), 1, loss)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if ours, err := a.Book(w.Context(), job, "1-3 ", 1); !ours || err != nil {
				w.Errorf("%t, %v", ours, err)
			}
		}()
		<-f.Struck()
		if ours, err := b.Book(w.Context(), job, "5-8 ", 2); err != nil || ours != (w.field("gaps") == "") {
			w.Errorf("the other's: %t, %v, %q is left", ours, err, w.field("gaps"))
		}
		<-done
		if n := number(w, "missed"); n != 1 && n != 3 {
			w.Errorf("%d were counted", n)
		}
	})
}

func TestDroppedTickThatNobodyFiredIsInAGap(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		for i, missed := range []bool{false, true} {
			l, _ := a.wins(a.claim(i + 1))
			_, err := l.Handover(w.Context(), 0, nil)
			w.must(err)
			d := w.dues()[0]
			ours, gaps, err := a.Drop(w.Context(), d, missed)
			if !ours || err != nil {
				w.Fatalf("drop: %t, %v", ours, err)
			}
			if missed {
				w.gaps(gaps, w.tick(i), w.tick(i+2))
			} else if gaps != "" {
				w.Errorf("gaps %q", gaps)
			}
			ours, again, err := a.Drop(w.Context(), d, missed)
			if ours || again != gaps || err != nil {
				w.Errorf("dropped again: %t, %q, %v", ours, again, err)
			}
			a.loses(a.claim(i+1), lock.Fired) // it waits no more
		}
	})
}
