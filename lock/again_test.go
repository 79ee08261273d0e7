package lock_test

import "testing"

// TestOnlyARunThatBeganIsRunAgainUnderAnotherKey: after a shutdown or a death the tick has the AgainKey, whichever replica makes
// it due again. A run that never started is handed on under the key that it had.
func TestOnlyARunThatBeganIsRunAgainUnderAnotherKey(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		c := a.claim(1)
		c.Again, c.AgainKey = true, "~ca97"
		want := func(doing, key string) {
			w.Helper()
			if ds := w.dues(); len(ds) != 1 || ds[0].Key != key {
				w.Fatalf("%s: due is %+v, want the key %q", doing, ds, key)
			}
			c = a.claimOf(w.dues()[0])
			c.Key = key
			c.Again, c.AgainKey = true, "~ca97"
		}
		l, _ := a.wins(c)
		_, err := l.Handover(w.Context(), 0, nil)
		w.must(err)
		want("a handover", "")
		l, _ = a.wins(c)
		_, err = l.Requeue(w.Context(), nil)
		w.must(err)
		want("a shutdown", "~ca97")
		l, _ = a.wins(c)
		_, err = l.Handover(w.Context(), 0, nil)
		w.must(err)
		want("a handover after that", "~ca97")
		c.Key = ""
		l, _ = a.wins(c)
		a.reaps(1)
		want("a death", "~ca97")
		_, err = l.Finish(w.Context(), 0, nil) // the replica lives: its Finish takes the due tick back
		w.must(err)
		w.dueTicks()
	})
}
