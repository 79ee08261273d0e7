package redisworld

import (
	"errors"
	"slices"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Sets sets a timer, and demands the answer.
func (r *Replica) Sets(id string, at time.Time, source string, created bool) {
	r.World.Helper()
	got, err := r.Service.SetTimer(r.World.Context(), id, at, []byte(source))
	if (got == service.TimerSet) != created || err != nil {
		r.World.Fatalf("set %q for %s: %s, %v; want that it is new: %t", id, at, got, err, created)
	}
}

// SetsSeries sets a timer with a schedule.
func (r *Replica) SetsSeries(id string, next time.Time, source string, waits time.Time, created bool) {
	r.World.Helper()
	got, made, err := r.Service.SetSeries(r.World.Context(), id, next, []byte(source))
	if err != nil || (made == service.TimerSet) != created || !got.Equal(waits) {
		r.World.Errorf("%s, %s, %v; want it to wait for %s, %t", got, made, err, waits, created)
	}
}

// Springs has the only timer that is due, which has a schedule, wait for its next time.
func (r *Replica) Springs(next time.Time, want service.Sprung) service.Spring {
	r.World.Helper()
	return r.springs(r.Sees(), next, want)
}

// SpringsSeries is Springs for the only timer with a schedule, which others are due beside.
func (r *Replica) SpringsSeries(next time.Time, want service.Sprung) service.Spring {
	r.World.Helper()
	dues := r.World.Dues()
	i := slices.IndexFunc(dues, func(d lock.Due) bool { return d.Kind == lock.Series })
	if i < 0 {
		r.World.Fatalf("no timer with a schedule waits: %+v", dues)
	}
	return r.springs(dues[i], next, want)
}

func (r *Replica) springs(d lock.Due, next time.Time, want service.Sprung) service.Spring {
	r.World.Helper()
	read, err := r.Service.Series(r.World.Context(), []lock.Due{d})
	r.World.Must(err)
	p := service.Spring{Series: read[0], Tick: read[0].Of.Tick, Next: next}
	r.SpringsAs(p, want)
	return p
}

// SpringsAs sends a Spring for one timer.
func (r *Replica) SpringsAs(p service.Spring, want service.Sprung) {
	r.World.Helper()
	codes, err := r.Service.Spring(r.World.Context(), []service.Spring{p})
	if err != nil || len(codes) != 1 || codes[0] != want {
		r.World.Errorf("%v, %v; want %s", codes, err, want)
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
