package lock_test

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// A claim with Second reads before it asks, and asks only for a tick that nobody has claimed.
func TestSecondAsksOnlyForWhatIsNotClaimed(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		w.must(b.Sync(w.Context()))
		asked := b.proxy.Count(lossy.Command("evalsha"))
		trips := b.proxy.Count(lossy.Any)
		claim := func(tick int) lock.Claim {
			c := b.claim(tick)
			c.Second = true
			return c
		}
		l, _ := a.wins(a.claim(2))
		for _, tick := range []int{2, 1} {
			answer := b.loses(claim(tick), lock.Fired)
			if answer.Holder != "a" || !answer.Prev.Equal(w.tick(2)) || answer.Now.IsZero() {
				w.Errorf("T%d: %+v", tick, answer)
			}
		}
		if asked.N() != 0 || trips.N() != 2 {
			w.Errorf("%d scripts in %d round trips for two claimed ticks", asked.N(), trips.N())
		}
		b.loses(claim(3), lock.Overlap)
		a.finishes(l, time.Second)
		answer := b.loses(claim(3), lock.Fired)
		if !answer.Overlap.Equal(w.tick(3)) {
			w.Errorf("the overlapped tick: %+v", answer)
		}
		if _, answer = b.wins(claim(4)); answer.Code != lock.Won {
			w.Errorf("the unclaimed tick: %+v", answer)
		}
	})
}

// When the reading fails, the claim is asked as always.
func TestSecondAsksWhenItCannotRead(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		b := w.replica("b")
		w.must(b.Sync(w.Context()))
		fault := b.proxy.On(lossy.Command("hmget"), 1, lossy.LoseReply)
		c := b.claim(1)
		c.Second = true
		b.wins(c)
		<-fault.Struck()
	})
}
