package lock_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

// missed books a number of missed ticks.
func missed(ticks int) []lock.Booking {
	return []lock.Booking{{Fate: lock.Missed, Ticks: ticks, Entry: "{}"}}
}

// wantGaps demands that ticks were missed in these times, as an answer tells them: from and to, by turns.
func wantGaps(w *redisworld.World, text string, want ...time.Time) {
	w.Helper()
	got, err := lock.ParseGaps(text)
	w.Must(err)
	var all []time.Time
	for _, g := range got {
		if g.Fate == lock.Missed || g.Fate == lock.Displaced {
			all = append(all, g.From, g.To)
		}
	}
	if !slices.EqualFunc(all, want, time.Time.Equal) {
		w.Errorf("the gaps are %v, want %v", all, want)
	}
}

func TestGapsAreReadAsTheyWereWritten(t *testing.T) {
	got, err := lock.ParseGaps("10-25 30-1795197400705:paused ")
	want := []lock.Interval{{time.UnixMilli(10), time.UnixMilli(25), lock.Missed},
		{time.UnixMilli(30), time.UnixMilli(1795197400705), lock.PausedTick}}
	same := func(a, b lock.Interval) bool { return a.From.Equal(b.From) && a.To.Equal(b.To) && a.Fate == b.Fate }
	if err != nil || !slices.EqualFunc(got, want, same) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := lock.ParseGaps(""); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"x", "1", "1-", "1-x 2-3", "-", "1-3:"} {
		if got, err := lock.ParseGaps(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// onEveryLossOfAClaim has a second replica ask for tick 9 behind ticks that nobody has asked for, while a run lives.
func onEveryLossOfAClaim(t *testing.T, policy lock.Policy, play func(w *redisworld.World, a lock.Answer)) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		a.Wins(a.ClaimUnder(policy, 1))
		if policy == lock.Replace {
			a.Loses(a.ClaimUnder(policy, 2), lock.Queued)
		}
		b.Proxy.On(lossy.Script(lock.AcquireSHA), 1, loss)
		c := b.ClaimUnder(policy, 9)
		c.Known, c.Before = w.Tick(1), w.Tick(8)
		l, got, err := b.Asks(c)
		if l != nil || err != nil {
			w.Fatalf("%v, %v", l, err)
		}
		play(w, got)
	})
}

func TestTicksMissedBeforeARefusedOneAreInAGapOnceWhateverBecameOfTheReply(t *testing.T) {
	onEveryLossOfAClaim(t, lock.Forbid, func(w *redisworld.World, got lock.Answer) {
		if got.Code != lock.Overlap {
			w.Errorf("%+v", got)
		}
		wantGaps(w, got.Gaps, w.Tick(1), w.Tick(9))
		wantGaps(w, w.Field("gaps"), w.Tick(1), w.Tick(9))
	})
}

func TestTicksMissedBeforeAQueuedOneAndTheDisplacedOneAreInAGapOnceWhateverBecameOfTheReply(t *testing.T) {
	onEveryLossOfAClaim(t, lock.Replace, func(w *redisworld.World, got lock.Answer) {
		if got.Code != lock.Queued && got.Code != lock.Waits {
			w.Errorf("%+v", got)
		}
		displaced := []time.Time{w.Tick(1), w.Tick(3)}
		want := append([]time.Time{w.Tick(2), w.Tick(9)}, displaced...)
		wantGaps(w, got.Gaps, want...)
		wantGaps(w, w.Field("gaps"), want...)
	})
}

func TestTicksMissedBeforeAWonOneAreInAGapThatOutlivesItsReplica(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		a.Finishes(l, 0)
		c := a.Claim(9)
		c.Known, c.Before = w.Tick(1), w.Tick(8)
		_, won := a.Wins(c)
		wantGaps(w, won.Gaps, w.Tick(1), w.Tick(9))
		b.Reaps(1)                             // a died before it could count
		got := b.Loses(b.Claim(5), lock.Fired) // and whoever asks next is told
		wantGaps(w, got.Gaps, w.Tick(1), w.Tick(9))
	})
}

func TestTicksMissedBeforeAPauseAreInAGap(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		w.Must(w.Admin.HSet(w.Context(), ledger, "tick", w.Tick(-5000).UnixMilli()).Err())
		before := w.Now()
		w.Must(a.Service.Pause(w.Context(), job, "", time.Time{}))
		w.Pass(20 * time.Millisecond)
		_, err := a.Service.Resume(w.Context(), job)
		w.Must(err)
		got := a.Loses(a.Claim(-1000), lock.Fired)
		all, err := lock.ParseGaps(got.Gaps)
		if err != nil || len(all) != 2 || all[1].Fate != lock.PausedTick || !all[1].To.Equal(got.PausedTo.Add(time.Millisecond)) ||
			!all[1].From.Equal(all[0].To.Add(-time.Millisecond)) || !all[0].From.Equal(w.Tick(-5000)) || all[0].To.Sub(before) < -time.Millisecond ||
			all[0].To.After(got.PausedTo) {
			w.Errorf("paused at %s until %s: gaps %v, %v", before, got.PausedTo, all, err)
		}
	})
}

func TestMissedTicksAreCountedOnceOverAllReplicas(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.Replica("a")
		c := a.Claim(9)
		c.Before = w.Tick(8)
		_, won := a.Wins(c)
		var counted atomic.Int64
		var all sync.WaitGroup
		for i := range 20 {
			r := w.Replica(fmt.Sprint("replica-", i))
			all.Go(func() {
				ours, err := r.Book(w.Context(), job, won.Gaps, missed(7))
				if err != nil {
					w.Error(err)
				}
				if ours {
					counted.Add(1)
				}
			})
		}
		all.Wait()
		if counted.Load() != 1 || w.Number("fate:missed") != 7 || w.Field("gaps") != "" {
			w.Errorf("%d replicas have counted, %s", counted.Load(), w.Dump())
		}
		kept := func(stream string) int64 { return w.Admin.XLen(w.Context(), "solotick:{svc}:"+stream+":"+job).Val() }
		if kept("history") != 1 || kept("failures") != 0 {
			w.Errorf("%d entries of them are in the history, and %d among the failures", kept("history"), kept("failures"))
		}
		w.Must(w.Admin.HSet(w.Context(), ledger, "gaps", "1-3:replaced 5-7:paused ").Err())
		ours, err := a.Book(w.Context(), job, "1-3:replaced 5-7:paused ", []lock.Booking{{Fate: lock.Displaced, Ticks: 2}, {Fate: lock.PausedTick, Ticks: 4}})
		if !ours || err != nil || w.Number("fate:missed") != 7 || w.Number("fate:replaced") != 2 || w.Number("fate:paused") != 4 {
			w.Errorf("the replaced ones are missed, and the paused ones are not: %t, %v, %s", ours, err, w.Dump())
		}
	})
}

func TestUnansweredCountIsAskedForAgainAndCountsOnce(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		if _, err := b.Book(w.Context(), "warm", "", nil); err != nil { // Redis knows the script
			w.Fatal(err)
		}
		w.Must(w.Admin.HSet(w.Context(), ledger, "gaps", "1-3 5-8 ").Err())
		f := a.Proxy.On(lossy.Script(lock.BookSHA), 1, loss)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if ours, err := a.Book(w.Context(), job, "1-3 ", missed(1)); !ours || err != nil {
				w.Errorf("%t, %v", ours, err)
			}
		}()
		<-f.Struck()
		if ours, err := b.Book(w.Context(), job, "5-8 ", missed(2)); err != nil || ours != (w.Field("gaps") == "") {
			w.Errorf("the other's: %t, %v, %q is left", ours, err, w.Field("gaps"))
		}
		<-done
		if n := w.Number("fate:missed"); n != 1 && n != 3 {
			w.Errorf("%d were counted", n)
		}
	})
}

func TestDroppedTickThatNobodyFiredIsInAGap(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		for i, fate := range []string{"", lock.Missed, "interrupted"} {
			l, _ := a.Wins(a.Claim(i + 1))
			_, err := l.Handover(w.Context(), 0, lock.Ending{})
			w.Must(err)
			d := w.Dues()[0]
			ours, gaps, err := a.Drop(w.Context(), d, fate)
			if !ours || err != nil {
				w.Fatalf("drop: %t, %v", ours, err)
			}
			all, _ := lock.ParseGaps(gaps)
			if len(all) != i || i > 0 && (all[i-1].Fate != fate || !all[i-1].From.Equal(w.Tick(i)) || !all[i-1].To.Equal(w.Tick(i+2))) {
				w.Errorf("the gaps are %+v", all)
			}
			ours, again, err := a.Drop(w.Context(), d, fate)
			if ours || again != gaps || err != nil {
				w.Errorf("dropped again: %t, %q, %v", ours, again, err)
			}
			a.Loses(a.Claim(i+1), lock.Fired) // it waits no more
		}
	})
}
