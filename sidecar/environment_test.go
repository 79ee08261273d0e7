package sidecar

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// in gives a replica its environment.
func in(environment string) func(*replica) {
	return func(r *replica) { r.environment = environment }
}

// firers is which replica of those that may fired the tick of each minute, from one on.
func (w *world) firers(from, to int) (all []string) {
	started := w.started("minute")
	for i := from; i <= to; i++ {
		by := ""
		for _, s := range started[w.origin().Add(time.Duration(i)*time.Minute)] {
			by += s.replica
		}
		all = append(all, by)
	}
	return all
}

func TestAReplicaOfAnotherEnvironmentLeavesTheTicksToThoseItCameTo(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(0, in("production"))
		w.at(-30 * time.Second)
		staging := w.replica(0, in("staging"))
		w.at(9*time.Minute + 30*time.Second)
		for i, by := range w.firers(0, 9) {
			if by != "r1" {
				t.Errorf("minute %d: fired by %q", i, by)
			}
		}
		if err := staging.WhyIdle(); err == nil || err.Error() != `replica r1 of environment "production" has the ticks` {
			t.Errorf("it says %v", err)
		}
		if !strings.Contains(staging.logs.String(), `environment=staging others="r1 (\"production\")" guest=true`) {
			t.Errorf("it does not log whom it leaves the ticks to:\n%s", staging.logs)
		}
		if err := w.replicas[0].WhyIdle(); err != nil {
			t.Errorf("production stands aside: %v", err)
		}
	})
}

// TestARolloutOfTheHostsGoesOnBesideAGuest: the new replicas join a guest, too, and are hosts all the same.
func TestARolloutOfTheHostsGoesOnBesideAGuest(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		old := w.replica(0, in("production"))
		w.at(-40 * time.Second)
		w.replica(0, in("staging"))
		w.at(-20 * time.Second)
		w.replica(0, in("production"))
		w.at(-10 * time.Second)
		old.stop()
		<-old.done
		w.at(9*time.Minute + 30*time.Second)
		for i, by := range w.firers(0, 9) {
			if by != "r3" {
				t.Errorf("minute %d: fired by %q", i, by)
			}
		}
	})
}

// TestAGuestFillsInWhileTheHostsAreGoneAndStandsAsideAgain: neither a service that moves to another namespace loses ticks,
// nor does one that is away for a restart lose them for good.
func TestAGuestFillsInWhileTheHostsAreGoneAndStandsAsideAgain(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		old := w.replica(0, in("production"))
		w.at(-40 * time.Second)
		guest := w.replica(0, in("staging"))
		w.at(30 * time.Second)
		old.stop()
		<-old.done
		w.at(2*time.Minute + 30*time.Second)
		w.replica(0, in("production"))
		w.at(4*time.Minute + 30*time.Second)
		if got, want := w.firers(0, 4), []string{"r1", "r2", "r2", "r3", "r3"}; !slices.Equal(got, want) {
			t.Errorf("fired by %q, want %q", got, want)
		}
		if guest.WhyIdle() == nil {
			t.Error("the guest does not stand aside again")
		}
	})
}

func TestReplicasWithoutAnEnvironmentAndThoseWithOneShareTheTicks(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(0) // of before
		w.at(-50 * time.Second)
		w.replica(0, in("production"))
		w.at(-40 * time.Second)
		w.replica(0)
		w.at(29*time.Minute + 30*time.Second)
		fired := w.firers(0, 29)
		for _, r := range w.replicas {
			if !slices.Contains(fired, r.name) {
				t.Errorf("%s never fires: %q", r.name, fired)
			}
		}
	})
}

func TestAJobOfEveryReplicaRunsOnGuestsToo(t *testing.T) {
	simulate(t, "jobs: [{name: minute, schedule: '* * * * *', guarantee: every-replica, exec: {command: [x]}}]", func(w *world) {
		w.replica(0, in("production"))
		w.at(-30 * time.Second)
		w.replica(0, in("staging"))
		w.at(30 * time.Second)
		if got := w.firers(0, 0); len(got[0]) != len("r1r2") {
			t.Errorf("fired by %q, want both", got)
		}
	})
}
