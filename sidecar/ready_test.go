package sidecar

import (
	"context"
	"slices"
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
