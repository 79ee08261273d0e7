package lock_test

import (
	"testing"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

// TestOnlyARunThatBeganIsRunAgainUnderAnotherKey: after a shutdown or a death the tick has the AgainKey, whichever replica makes
// it due again. A run that never started is handed on under the key that it had.
func TestOnlyARunThatBeganIsRunAgainUnderAnotherKey(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		c := a.Claim(1)
		c.Again, c.AgainKey = true, "~ca97"
		want := func(doing, key string) {
			w.Helper()
			if ds := w.Dues(); len(ds) != 1 || ds[0].Key != key {
				w.Fatalf("%s: due is %+v, want the key %q", doing, ds, key)
			}
			c = a.ClaimOf(w.Dues()[0])
			c.Key = key
			c.Again, c.AgainKey = true, "~ca97"
		}
		l, _ := a.Wins(c)
		_, err := l.Handover(w.Context(), 0, lock.Ending{})
		w.Must(err)
		want("a handover", "")
		l, _ = a.Wins(c)
		_, err = l.Requeue(w.Context(), lock.Ending{})
		w.Must(err)
		want("a shutdown", "~ca97")
		l, _ = a.Wins(c)
		_, err = l.Handover(w.Context(), 0, lock.Ending{})
		w.Must(err)
		want("a handover after that", "~ca97")
		c.Key = ""
		l, _ = a.Wins(c)
		a.Reaps(1)
		want("a death", "~ca97")
		_, err = l.Finish(w.Context(), 0, lock.Ending{}) // the replica lives: its Finish takes the due tick back
		w.Must(err)
		w.DueTicks()
	})
}
