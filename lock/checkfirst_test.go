package lock_test

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/internal/proof/redisworld"
	"github.com/solotick/solotick/lock"
)

// A claim with CheckFirst reads before it asks, and asks only for a tick that nobody has claimed.
func TestCheckFirstAsksOnlyForWhatIsNotClaimed(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(b.Sync(w.Context()))
		asked := b.Proxy.Count(lossy.Command("evalsha"))
		trips := b.Proxy.Count(lossy.Any)
		claim := func(tick int) lock.Claim {
			c := b.Claim(tick)
			c.CheckFirst = true
			return c
		}
		l, _ := a.Wins(a.Claim(2))
		for _, tick := range []int{2, 1} {
			answer := b.Loses(claim(tick), lock.Fired)
			if answer.Holder != "a" || !answer.Prev.Equal(w.Tick(2)) || answer.Now.IsZero() {
				w.Errorf("T%d: %+v", tick, answer)
			}
		}
		if asked.N() != 0 || trips.N() != 2 {
			w.Errorf("%d scripts in %d round trips for two claimed ticks", asked.N(), trips.N())
		}
		b.Loses(claim(3), lock.Overlap)
		a.Finishes(l, time.Second)
		answer := b.Loses(claim(3), lock.Fired)
		if !answer.Overlap.Equal(w.Tick(3)) {
			w.Errorf("the overlapped tick: %+v", answer)
		}
		if _, answer = b.Wins(claim(4)); answer.Code != lock.Won {
			w.Errorf("the unclaimed tick: %+v", answer)
		}
	})
}

// When the reading fails, the claim is asked as always.
func TestCheckFirstAsksWhenItCannotRead(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		b := w.Replica("b")
		w.Must(b.Sync(w.Context()))
		fault := b.Proxy.On(lossy.Command("hmget"), 1, lossy.LoseReply)
		c := b.Claim(1)
		c.CheckFirst = true
		b.Wins(c)
		<-fault.Struck()
	})
}
