package lock_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func TestARunTellsItsProcess(t *testing.T) {
	one, two := uuid.NewString(), uuid.NewString()
	runs := map[string]bool{}
	for range 1000 {
		run := lock.NewRun(one)
		if id, err := uuid.Parse(run); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 || runs[run] {
			t.Fatalf("%q is no new random UUID: %v", run, err)
		}
		runs[run] = true
		if lock.Node(run) != lock.Node(one) || lock.Node(run) == lock.Node(two) {
			t.Fatalf("run %s is of process %s, not of %s", run, one, two)
		}
	}
	a, b := lock.NewRun(""), lock.NewRun("")
	if lock.Node(a) == lock.Node(b) || lock.Node(a) == "" {
		t.Errorf("runs of no process in particular: %s, %s", a, b)
	}
	for _, none := range []string{"", "half-written", "a name that is longer than a node, and no UUID!!"} {
		if n := lock.Node(none); n != "" {
			t.Errorf("%q has node %q", none, n)
		}
	}
}

// knows makes a watcher of a new process, which knows that another one is dead.
func knows(r *redisworld.Replica, dead string) *lock.Watcher {
	w := r.NewWatcher()
	w.Dead = func(run string) bool { return lock.Node(run) == lock.Node(dead) }
	return w
}

func ofProcess(c lock.Claim, process string) lock.Claim {
	c.Run = lock.NewRun(process)
	return c
}

func TestARunOfADeadProcessIsTakenOverAtOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		dead, other := uuid.NewString(), uuid.NewString()
		old, again, another := w.Replica("a"), w.Replica("a"), w.Replica("b")
		c := ofProcess(old.Claim(1), dead)
		old.Wins(c)
		ttl := func(string) time.Duration { return w.TTL }
		// Neither one that knows of other deaths nor one that knows of none is as fast.
		for _, watch := range []*lock.Watcher{knows(another, other), another.NewWatcher()} {
			if found := watch.Unchanged(another.Looks(), ttl); len(found) != 0 {
				w.Fatalf("not known to be dead, and found: %v", found)
			}
			if _, ok, err := watch.Reap(w.Context(), another.Looks()[0], interrupted); ok || err != nil {
				w.Fatalf("not known to be dead, and taken over: %v, %v", ok, err)
			}
		}
		watch := knows(again, dead)
		found := watch.Unchanged(again.Looks(), ttl)
		if len(found) != 1 || found[0].Run != c.Run {
			w.Fatalf("found %v", found)
		}
		rec, ok, err := watch.Reap(w.Context(), found[0], interrupted)
		if !ok || err != nil || rec.Replica != "a" || !rec.Tick.Equal(w.Tick(1)) {
			w.Fatalf("taken over: %+v, %v, %v", rec, ok, err)
		}
		if w.Runs() != 0 || w.Owner() != "" {
			w.Errorf("%s", w.Dump())
		}
		if _, ok, err := watch.Reap(w.Context(), found[0], interrupted); ok || err != nil {
			w.Errorf("taken over twice: %v, %v", ok, err)
		}
		again.Wins(ofProcess(again.Claim(2), other))
	})
}

// A request of the dead process may have been under way when it died.
func TestARunOfADeadProcessThatWasJustExtendedIsTakenOverAtTheNextLook(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		dead := uuid.NewString()
		old, again := w.Replica("a"), w.Replica("a")
		l, _ := old.Wins(ofProcess(old.Claim(1), dead))
		watch := knows(again, dead)
		seen := again.Looks()
		w.Pass(10 * time.Millisecond)
		w.Must(l.Verify(w.Context()))
		if _, ok, err := watch.Reap(w.Context(), seen[0], interrupted); ok || err != nil {
			w.Fatalf("taken over by a lease end that was not the last: %v, %v", ok, err)
		}
		if _, ok, err := watch.Reap(w.Context(), again.Looks()[0], interrupted); !ok || err != nil {
			w.Errorf("taken over: %v, %v", ok, err)
		}
	})
}

// A replica may have the name of another one that lives: it is the process that counts.
func TestARunOfALivingProcessIsLeftAloneWhateverItsReplicaIsCalled(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		dead, living := uuid.NewString(), uuid.NewString()
		a, same := w.Replica("a"), w.Replica("a")
		l, _ := a.Wins(ofProcess(a.Claim(1), living))
		watch := knows(same, dead)
		ttl := func(string) time.Duration { return w.TTL }
		if found := watch.Unchanged(same.Looks(), ttl); len(found) != 0 {
			w.Fatalf("found %v", found)
		}
		if _, ok, err := watch.Reap(w.Context(), same.Looks()[0], interrupted); ok || err != nil {
			w.Fatalf("taken over: %v, %v", ok, err)
		}
		w.Must(l.Verify(w.Context()))
		a.Finishes(l, 0)
	})
}

// Nothing that is said of processes makes a replica take over what it runs itself.
func TestARunThatThisProcessKeepsIsNeverDead(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		own := uuid.NewString()
		a := w.Replica("a")
		l, _ := a.Wins(ofProcess(a.Claim(1), own))
		_, stop := l.Keep(w.Context())
		defer stop()
		if found := knows(a, own).Unchanged(a.Looks(), func(string) time.Duration { return w.TTL }); len(found) != 0 {
			w.Errorf("found %v", found)
		}
	})
}

// The caller is about to settle such a run. A takeover before would count it as dead.
func TestARunWhoseWindowHasEndedIsLeftToThisProcessUntilItStopsKeepingIt(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		kept, stop := l.Keep(w.Context())
		defer stop()
		a.CutOff()
		<-kept.Done()
		w.Must(a.Proxy.Refuse(false))
		w.Pass(2 * time.Second) // so that its client dials again
		watch := a.NewWatcher()
		if found := looks(w, a, watch, 2*long); len(found) != 0 {
			w.Errorf("it is found before: %v", found)
		}
		stop()
		if found := looks(w, a, watch, time.Second); len(found) != 1 {
			w.Errorf("then found is %v", found)
		}
	})
}
