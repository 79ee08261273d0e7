package sidecar

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// A process that knows that the one before it is dead has ended its runs before it registers its first job.
func TestARestartInPlaceGoesOnAtOnce(t *testing.T) {
	for guarantee, want := range map[string]string{"at-most-once": "schedule 1", "at-least-once": "takeover 2"} {
		simulate(t, policy("timeout: 10m, lock: {ttl: 15s}, guarantee: "+guarantee), func(w *world) {
			first, second := uuid.NewString(), uuid.NewString()
			place := func(process string, died ...string) func(*replica) {
				return func(r *replica) { r.name, r.process, r.died = "app", process, died }
			}
			dead := w.replica(10*time.Minute, place(first))
			w.at(2 * time.Second)
			run := w.started("minute")[w.origin()][0].run
			if lock.Node(run.ID) != lock.Node(first) {
				t.Fatalf("run %s is not known as that of process %s", run.ID, first)
			}
			dead.crash()
			w.at(3 * time.Second)
			again := w.replica(time.Second, place(second, lock.Node(first)))
			w.at(3250 * time.Millisecond)
			failures, err := again.store.Search(w.t.Context(), service.Search{Jobs: []string{"minute"}, Failed: true, Limit: 10})
			if len(failures) != 1 || err != nil || failures[0].Outcome != "interrupted" || failures[0].Run != run.ID ||
				failures[0].Detail != "the process of replica app ended during the run; replica app was restarted in its place" {
				t.Fatalf("%s: the failures are %+v, %v", guarantee, failures, err)
			}
			w.at(61 * time.Second)
			all := w.started("minute")
			next := all[w.origin().Add(time.Minute)]
			if guarantee == "at-least-once" {
				next = all[w.origin()][1:]
			}
			if len(next) != 1 {
				t.Fatalf("%s: started %+v", guarantee, all)
			}
			if got := next[0].run.Kind + " " + string(rune('0'+next[0].run.Attempt)); got != want {
				t.Errorf("%s: went on with %s, want %s", guarantee, got, want)
			}
			if late := next[0].at.Sub(w.origin()) - 3*time.Second; guarantee == "at-least-once" && late > 250*time.Millisecond {
				t.Errorf("it was run again %s after the restart", late)
			}
		})
	}
}

func TestARunThatIsTakenOverWorksSinceTheSameSuccess(t *testing.T) {
	simulate(t, policy("timeout: 10m, lock: {ttl: 15s}, guarantee: at-least-once"), func(w *world) {
		dead := w.replica(30 * time.Second)
		w.at(62 * time.Second)
		dead.crash()
		w.at(63 * time.Second)
		w.replica(time.Second)
		w.at(125 * time.Second)
		all, minute := w.started("minute"), func(n time.Duration) time.Time { return w.origin().Add(n * time.Minute) }
		if first := all[minute(0)]; len(first) != 1 || !first[0].run.Since.IsZero() {
			t.Errorf("before the first success: %+v", first)
		}
		second := all[minute(1)]
		if len(second) != 2 || !second[0].run.Since.Equal(minute(0)) || !second[1].run.Since.Equal(minute(0)) {
			t.Errorf("both runs must go on from %s: %+v", minute(0), second)
		}
		if third := all[minute(2)]; len(third) != 1 || !third[0].run.Since.Equal(minute(1)) {
			t.Errorf("after the second success: %+v", third)
		}
	})
}

// A replica that has the same name, and is another instance, says nothing of the one that has stopped renewing: that
// may live.
func TestAReplicaOfTheSameNameElsewhereWaitsForTheLease(t *testing.T) {
	simulate(t, policy("timeout: 10m, lock: {ttl: 15s}"), func(w *world) {
		place := func(process string, died ...string) func(*replica) {
			return func(r *replica) { r.name, r.process, r.died = "app", process, died }
		}
		gone := w.replica(10*time.Minute, place(uuid.NewString()))
		w.at(2 * time.Second)
		gone.crash()
		w.at(3 * time.Second)
		other := w.replica(time.Second, place(uuid.NewString(), lock.Node(uuid.NewString())))
		w.at(16 * time.Second)
		if failures, err := other.store.Search(w.t.Context(), service.Search{Jobs: []string{"minute"}, Failed: true, Limit: 10}); len(failures) != 0 || err != nil {
			t.Fatalf("taken over: %+v, %v", failures, err)
		}
		w.at(30 * time.Second)
		if failures, err := other.store.Search(w.t.Context(), service.Search{Jobs: []string{"minute"}, Failed: true, Limit: 10}); len(failures) != 1 || err != nil {
			t.Fatalf("not taken over: %+v, %v", failures, err)
		}
	})
}

func TestWhatIsNotRunAgainAfterItsReplicaDiedWasInterruptedAndNotMissed(t *testing.T) {
	simulate(t, policy("timeout: 10m, lock: {ttl: 15s}, guarantee: at-least-once"), func(w *world) {
		dead := w.replica(10 * time.Minute)
		w.at(2 * time.Second)
		watching := w.replica(time.Second)
		w.at(5 * time.Second)
		dead.crash()
		w.swap(watching, policy("timeout: 10m, lock: {ttl: 15s}, guarantee: at-least-once, suspend: true"))
		w.at(50 * time.Second)
		if n := len(w.started("minute")[w.origin()]); n != 1 {
			t.Fatalf("started %d times\n%s", n, w.log())
		}
		fates, err := watching.store.TickFates(w.t.Context(), "minute")
		w.must(err)
		if fate := fates.Fate(w.origin()); fate == nil || fate.Outcome != string(wasInterrupted) {
			t.Errorf("the tick's fate is %+v\n%s", fate, w.log())
		}
		if n := watching.value("missed_total", "minute"); n != 0 {
			t.Errorf("%v ticks count as missed", n)
		}
	})
}
