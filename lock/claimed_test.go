package lock_test

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

// The probes compare each answer with that of a claim.
func TestManyTicksAreLookedAtInOneRoundTrip(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(b.Sync(w.Context()))
		a.Wins(a.Claim(2))
		const many = 200
		ticks := make([]lock.TickOf, many)
		for i := range ticks {
			ticks[i] = lock.TickOf{Job: redisworld.Job, Tick: w.Tick(i)}
		}
		_, err := b.Claimed(w.Context(), ticks[:1]) // Redis knows the script from now on
		w.Must(err)
		asked := b.Proxy.Count(lossy.Any)
		answers, err := b.Claimed(w.Context(), ticks)
		w.Must(err)
		for i, got := range answers {
			if claimed := got.Code == lock.Fired && got.Holder == "a" && got.Prev.Equal(w.Tick(2)); claimed != (i <= 2) {
				w.Errorf("T%d: %+v", i, got)
			}
		}
		if len(answers) != many || asked.N() != 1 {
			w.Errorf("%d answers in %d round trips for %d ticks", len(answers), asked.N(), many)
		}
		before := w.Now()
		answers, err = b.Claimed(w.Context(), []lock.TickOf{ticks[2], ticks[5], ticks[2]}) // each ledger is asked for its own
		w.Must(err)
		for i, want := range []lock.Code{lock.Fired, "", lock.Fired} {
			if got := answers[i]; got.Code != want || got.Now.Before(before.Truncate(time.Millisecond)) || got.Now.After(w.Now()) {
				w.Errorf("%d of three, asked for at %s: %+v, want %q", i+1, before, got, want)
			}
		}
	})
}

func TestALookWithoutAnAnswerSaysNothing(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		b := w.Replica("b")
		w.Must(b.Sync(w.Context()))
		fault := b.Proxy.On(lossy.Command("evalsha"), 1, lossy.LoseReply)
		answers, err := b.Claimed(w.Context(), []lock.TickOf{{Job: redisworld.Job, Tick: time.Now()}})
		if err == nil || len(answers) != 0 {
			w.Errorf("%+v, %v", answers, err)
		}
		<-fault.Struck()
	})
}
