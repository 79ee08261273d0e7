package sidecar

import (
	"maps"
	"sync"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

// deferred are the due members that this replica is busy with, or leaves alone for a while. Looks, fires and nudges
// use it concurrently.
type deferred struct {
	fires *sync.WaitGroup // the fires, and the goroutines of once

	mu          sync.Mutex
	busy        map[string]bool
	until       map[string]deferral // by member; service.TimerJobs stands for all timers
	resumptions int
}

// deferral says until when the replica leaves a member alone.
type deferral struct {
	job    string
	until  time.Time // on this machine's clock
	paused bool      // by a pause; else for a moment
}

func newDeferred(fires *sync.WaitGroup) *deferred {
	return &deferred{fires: fires, busy: map[string]bool{}, until: map[string]deferral{}}
}

// begin marks a member as busy until done is called. Not ok if it is marked already.
func (d *deferred) begin(member string) (done func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[member] {
		return nil, false
	}
	d.busy[member] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.busy, member)
	}, true
}

// leavesTimer reports whether this replica is busy with a timer, or leaves it, or all timers, alone.
func (d *deferred) leavesTimer(member string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, one := d.until[member]
	_, all := d.until[service.TimerJobs]
	return d.busy[member] || one || all
}

// once runs do in a goroutine, unless this replica is busy with the member already. Each do takes a round trip:
// thousands of members that are too late must not hold up the next one.
func (d *deferred) once(member string, do func()) {
	done, ok := d.begin(member)
	if !ok {
		return
	}
	d.fires.Go(func() {
		defer done()
		do()
	})
}

// deferUntil leaves a member of a job alone until an instant.
func (d *deferred) deferUntil(member, job string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until[member] = deferral{job, until, false}
}

// resumptionCount is the number of resumptions that this replica has heard of so far.
func (d *deferred) resumptionCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resumptions
}

// deferPaused defers a member that met a pause, unless an operator has resumed a job since resumptionCount was
// before. In that case the nudge came before the member was deferred, and could not end the deferral.
func (d *deferred) deferPaused(member, job string, until time.Time, before int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resumptions == before {
		d.until[member] = deferral{job, until, true}
	}
}

// isDeferred reports whether a member is deferred now; service.TimerJobs stands for all timers.
func (d *deferred) isDeferred(member string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.until[member]
	return ok
}

// isBrief reports whether a member is deferred for a moment, and not by a pause.
func (d *deferred) isBrief(member string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.until[member]
	return ok && !l.paused
}

// resume ends the time of a job's members; of all with service.AnyJob.
func (d *deferred) resume(job string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resumptions++
	maps.DeleteFunc(d.until, func(_ string, l deferral) bool { return job == service.AnyJob || job == l.job })
}

// expire ends the deferrals that lasted until now.
func (d *deferred) expire(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.until, func(_ string, l deferral) bool { return !now.Before(l.until) })
}

// deferredTimers is the number of deferred members that are timers.
func (d *deferred) deferredTimers() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.until {
		if service.IsTimer(l.job) {
			n++
		}
	}
	return n
}

// pauseRetry is how long the replica leaves a due member alone that met a pause, unless an operator resumes the job.
const pauseRetry = time.Minute

// pauseOver is until when to defer a member that met a pause, on this machine's clock. Redis ends the pause by its own.
func pauseOver(why skip, c *clock) time.Time {
	wait := pauseRetry
	if now, ok := c.redis(); ok && !why.until.IsZero() {
		wait = min(wait, why.until.Sub(now))
	}
	return time.Now().Add(wait)
}
