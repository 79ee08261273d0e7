package redisworld

import (
	"errors"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

// Sets sets a timer, and demands the answer.
func (r *Replica) Sets(id string, at time.Time, source string, created bool) {
	r.World.Helper()
	if got, err := r.Service.SetTimer(r.World.Context(), id, at, []byte(source)); got != created || err != nil {
		r.World.Fatalf("set %q for %s: created %t, %v; want %t", id, at, got, err, created)
	}
}

// ComesTooLate demands that a timer is neither set nor deleted any more.
func (r *Replica) ComesTooLate(id string) {
	r.World.Helper()
	before := r.World.Dump()
	_, err := r.Service.SetTimer(r.World.Context(), id, r.World.Tick(1), []byte("another"))
	if !errors.Is(err, service.ErrTimerFired) {
		r.World.Errorf("set %q: %v, want that it has fired", id, err)
	}
	if ok, err := r.Service.DeleteTimer(r.World.Context(), id); ok || err != nil {
		r.World.Errorf("delete %q: %t, %v", id, ok, err)
	}
	if after := r.World.Dump(); after != before {
		r.World.Errorf("it has changed\n%s\nto\n%s", before, after)
	}
}

// Source is what Redis keeps of a timer; "" when it is nothing.
func (r *Replica) Source(id string) string {
	r.World.Helper()
	source, _, err := r.Service.Timer(r.World.Context(), id)
	if err != nil && !errors.Is(err, service.ErrNoTimer) {
		r.World.Fatal(err)
	}
	return string(source)
}
