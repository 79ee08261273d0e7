package sidecar

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeGate counts how often it is asked.
type fakeGate struct {
	fakeApp
	mu  sync.Mutex
	all []time.Time
}

// asked are the times at which it was.
func (a *fakeGate) asked() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func (a *fakeGate) Probe(ctx context.Context) error {
	a.mu.Lock()
	a.all = append(a.all, time.Now())
	a.mu.Unlock()
	return a.fakeApp.Probe(ctx)
}

func TestAnAppIsAskedOftenUntilItIsReadyForTheFirstTime(t *testing.T) {
	simulate(t, "ready: {tcp: '127.0.0.1:1', interval: 5s}\n"+minutely, func(w *world) {
		app := &fakeGate{}
		began := time.Now()
		r := w.replica(time.Second, func(r *replica) { r.app = app })
		time.Sleep(time.Second)
		if n := len(app.asked()); n < 5 || n > 11 || app.asked()[0].Sub(began) > 50*time.Millisecond {
			t.Errorf("in its first second it was asked %d times, first after %s", n, app.asked()[0].Sub(began))
		}
		app.ready.Store(true)
		time.Sleep(200 * time.Millisecond)
		if r.value("app_ready") != 1 {
			t.Error("200 ms later it is not known to be ready")
		}
		before := len(app.asked())
		time.Sleep(time.Minute)
		if n := len(app.asked()) - before; n != 12 {
			t.Errorf("within the minute after that it was asked %d times, want every 5 s", n)
		}
		app.ready.Store(false)
		time.Sleep(5 * time.Second) // and from then on at its own pace, too
		before = len(app.asked())
		time.Sleep(time.Minute)
		if n := len(app.asked()) - before; n != 12 {
			t.Errorf("within a minute of not being ready any more it was asked %d times, want every 5 s", n)
		}
	})
}

// newJob starts replicas whose apps are not ready, for a job that is new and has these keys.
func newJob(t *testing.T, keys string, f func(w *world, apps []*fakeApp)) {
	t.Helper()
	simulate(t, gated+"jobs: [{name: minute, schedule: '* * * * *', exec: {command: [x]}, "+keys+"}]\n", func(w *world) {
		apps := []*fakeApp{{}, {}}
		for _, app := range apps {
			w.replica(time.Second, func(r *replica) { r.app = app })
		}
		f(w, apps)
	})
}

// tell gives the ticks of the job that were started, and how many were missed.
func (w *world) tell() string {
	w.t.Helper()
	return fmt.Sprintf("%s, %v missed", strings.Join(w.order("minute"), ", "), w.sum("missed_total"))
}

// A new job misses nothing before its app is ready: the newest tick that waits is fired, as always, and those before it
// do not count. Afterwards they do.
func TestANewJobMissesNothingBeforeItsAppIsReady(t *testing.T) {
	for keys, want := range map[string]string{
		"missed: latest":            "4m0s schedule, 5m0s schedule, 8m0s schedule, 9m0s schedule, 2 missed",
		"missed: skip":              "5m0s schedule, 9m0s schedule, 3 missed",
		"missed: skip, jitter: 20s": "5m0s schedule, 9m0s schedule, 3 missed",
		"startingDeadline: 10s":     "5m0s schedule, 9m0s schedule, 3 missed",
		"guarantee: at-least-once":  "4m0s schedule, 5m0s schedule, 8m0s schedule, 9m0s schedule, 2 missed",
		"concurrencyPolicy: Allow":  "4m0s schedule, 5m0s schedule, 8m0s schedule, 9m0s schedule, 2 missed",
		"missed: all": "0s catchup, 1m0s catchup, 2m0s catchup, 3m0s catchup, 4m0s catchup, 5m0s schedule, " +
			"6m0s catchup, 7m0s catchup, 8m0s catchup, 9m0s schedule, 0 missed",
	} {
		t.Run(keys, func(t *testing.T) {
			newJob(t, keys, func(w *world, apps []*fakeApp) {
				w.at(4*time.Minute + 30*time.Second)
				apps[0].ready.Store(true)
				w.at(4*time.Minute + 50*time.Second)
				apps[1].ready.Store(true)
				w.at(5*time.Minute + 50*time.Second)
				for _, r := range w.replicas {
					r.disconnect(true)
				}
				w.at(8*time.Minute + 30*time.Second)
				for _, r := range w.replicas {
					r.disconnect(false)
				}
				w.at(9*time.Minute + 50*time.Second)
				if got := w.tell(); got != want {
					t.Errorf("fired %s, want %s\n%s", got, want, w.log())
				}
			})
		})
	}
}

// A replica that was not there for all ticks of the job cannot say that no app was ready.
func TestTicksOfANewJobAreMissedIfAnAppMayHaveBeenReady(t *testing.T) {
	newJob(t, "missed: latest", func(w *world, apps []*fakeApp) {
		apps[0].ready.Store(true)
		w.at(-5 * time.Second)
		for _, r := range w.replicas {
			r.stop()
		}
		w.at(2*time.Minute + 30*time.Second)
		app := &fakeApp{}
		w.replica(time.Second, func(r *replica) { r.app = app })
		w.at(4*time.Minute + 30*time.Second)
		app.ready.Store(true)
		w.at(5*time.Minute + 30*time.Second)
		if got, want := w.tell(), "4m0s schedule, 5m0s schedule, 4 missed"; got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}

// A job is new only if it began with its replicas: the app of one that is older was ready before.
func TestAnOlderJobMissesTheTickOfARestart(t *testing.T) {
	simulate(t, gated+"jobs: [{name: minute, schedule: '21,22 0 * * *', exec: {command: [x]}, missed: skip}]\n", func(w *world) {
		before, after := &fakeApp{}, &fakeApp{}
		before.ready.Store(true)
		first := w.replica(time.Second, func(r *replica) { r.app = before })
		w.at(9*time.Minute + 50*time.Second)
		first.stop()
		w.replica(time.Second, func(r *replica) { r.app = after })
		w.at(10*time.Minute + 30*time.Second)
		after.ready.Store(true)
		w.at(11*time.Minute + 30*time.Second)
		if got, want := w.tell(), "11m0s schedule, 1 missed"; got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}

// Another schedule makes no new job: an app was ready before, and may be still.
func TestAJobWithAnotherScheduleMissesTicksBeforeAnAppIsReady(t *testing.T) {
	newJob(t, "missed: latest", func(w *world, apps []*fakeApp) {
		apps[0].ready.Store(true)
		w.at(30 * time.Second)
		next := gated + "jobs: [{name: minute, schedule: '*/2 * * * *', exec: {command: [x]}, missed: latest}]\n"
		for _, r := range w.replicas {
			w.must(r.Reload(parse(t, next), nil))
		}
		w.at(40 * time.Second)
		w.replicas[0].stop()
		w.at(4*time.Minute + 30*time.Second)
		apps[1].ready.Store(true)
		w.at(6*time.Minute + 30*time.Second)
		if got, want := w.tell(), "0s schedule, 3m0s schedule, 5m0s schedule, 1 missed"; got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}

// A replica whose app is ready late may not have heard that the job is new no more: under Allow it has asked for
// nothing.
func TestTicksAreMissedThoughAReplicaTakesTheJobForNew(t *testing.T) {
	newJob(t, "concurrencyPolicy: Allow", func(w *world, apps []*fakeApp) {
		apps[0].ready.Store(true)
		w.at(90 * time.Second)
		w.replicas[0].stop()
		w.at(5*time.Minute + 30*time.Second)
		apps[1].ready.Store(true)
		w.at(6*time.Minute + 30*time.Second)
		if got, want := w.tell(), "0s schedule, 1m0s schedule, 5m0s schedule, 6m0s schedule, 3 missed"; got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}

// A tick that came due after its app was ready counts, also before the first claim.
func TestANewJobMissesWhatComesDueWhenItsAppIsReady(t *testing.T) {
	newJob(t, "missed: latest", func(w *world, apps []*fakeApp) {
		w.at(90 * time.Second)
		for _, r := range w.replicas {
			r.disconnect(true)
		}
		w.at(100 * time.Second)
		apps[0].ready.Store(true)
		w.at(4*time.Minute + 30*time.Second)
		for _, r := range w.replicas {
			r.disconnect(false)
		}
		w.at(5*time.Minute + 30*time.Second)
		if got, want := w.tell(), "4m0s schedule, 5m0s schedule, 2 missed"; got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}

// Also when it makes up for all of them: Redis may know of a pause that keeps those before its end from being fired, and
// counts none of these.
func TestANewJobThatFiresAllTicksMissesNoneBeforeItsAppIsReady(t *testing.T) {
	newJob(t, "missed: all", func(w *world, _ []*fakeApp) {
		w.at(4*time.Minute + 30*time.Second)
		r := w.replicas[0]
		j, tick := r.job("minute"), w.origin().Add(4*time.Minute)
		r.slots.setUnready("", time.Now())
		q := r.firer.claimer.claim(&wake{job: j, spec: j.spec, tick: tick, due: tick})
		if n := len(q.Older); n != 5 || !q.Known.Equal(tick.Add(-time.Minute)) || !q.Before.IsZero() {
			t.Errorf("it claims %d ticks, having missed none up to %s, and knows of %s before them", n, q.Known, q.Before)
		}
	})
}

// It fires all of them also if Redis loses its data just before.
func TestANewJobFiresAllTicksThoughRedisHasLostItsData(t *testing.T) {
	newJob(t, "missed: all, concurrencyPolicy: Queue, guarantee: at-least-once", func(w *world, apps []*fakeApp) {
		w.at(4*time.Minute + 30*time.Second)
		w.redis.FlushAll()
		apps[0].ready.Store(true)
		w.at(5*time.Minute + 30*time.Second)
		const want = "0s catchup, 1m0s catchup, 2m0s catchup, 3m0s catchup, 4m0s catchup, 5m0s schedule, 0 missed"
		if got := w.tell(); got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}

// The ledger that the first claim finds lost is made anew behind the tick that is asked for. The ticks that it had are
// missed, as always.
func TestANewJobFiresItsFirstTickThoughRedisHasLostItsData(t *testing.T) {
	newJob(t, "guarantee: at-least-once", func(w *world, apps []*fakeApp) {
		w.at(4*time.Minute + 30*time.Second)
		w.redis.FlushAll()
		apps[0].ready.Store(true)
		w.at(5*time.Minute + 30*time.Second)
		if got, want := w.tell(), "4m0s schedule, 5m0s schedule, 4 missed"; got != want {
			t.Errorf("fired %s, want %s\n%s", got, want, w.log())
		}
	})
}
