package sidecar

import (
	"sync"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

// deferred are the due members that this replica is busy with, or leaves alone for a while. Looks, fires and nudges use it at the
// same time.
type deferred struct {
	runs *sync.WaitGroup // what is under way beside the looks

	mu          sync.Mutex
	busy        map[string]bool
	until       map[string]deferral // by member; service.TimerJobs stands for all timers
	resumptions int
}

// leftAlone is a member that is left alone.
type deferral struct {
	job   string
	until time.Time // on this machine's clock
}

func newDeferred(runs *sync.WaitGroup) *deferred {
	return &deferred{runs: runs, busy: map[string]bool{}, until: map[string]deferral{}}
}

// begin makes the caller the one who is busy with a member, until done is called. Not ok while somebody else is.
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

// beside does something about a due member beside the looks, unless something is being done about it here: thousands that
// are too late, a round trip each, would hold up the one behind them that is not.
func (d *deferred) once(member string, do func()) {
	done, ok := d.begin(member)
	if !ok {
		return
	}
	d.runs.Go(func() {
		defer done()
		do()
	})
}

// leave has a member of a job left alone until then.
func (d *deferred) deferUntil(member, job string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until[member] = deferral{job, until}
}

// heard is how often somebody has resumed something so far.
func (d *deferred) resumptionCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resumptions
}

// leaveInPause is leave for a member that met with a pause, except when somebody has resumed something since heard was asked: that
// nudge came too early to find the member left alone.
func (d *deferred) deferPaused(member, job string, until time.Time, before int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resumptions == before {
		d.until[member] = deferral{job, until}
	}
}

// leaves tells whether a member, or with service.TimerJobs every timer, is left alone now.
func (d *deferred) isDeferred(member string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.until[member]
	return ok
}

// resume ends the time of a job's members; of all with service.AnyJob.
func (d *deferred) resume(job string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resumptions++
	for member, l := range d.until {
		if job == service.AnyJob || job == l.job {
			delete(d.until, member)
		}
	}
}

// expire ends the time of what was left alone until now.
func (d *deferred) expire(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for member, l := range d.until {
		if !now.Before(l.until) {
			delete(d.until, member)
		}
	}
}

// timers is how many of the members that are left alone are timers.
func (d *deferred) deferredTimers() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.until {
		if isTimer(l.job) {
			n++
		}
	}
	return n
}

// pauseRetry is how long a due tick that met with a pause is left alone, unless somebody resumes the job.
const pauseRetry = time.Minute

// pauseOver is until when what met with a pause is left alone, on this machine's clock; now is the cluster clock's.
func pauseOver(why skip, now time.Time) time.Time {
	wait := pauseRetry
	if !why.until.IsZero() {
		wait = min(wait, why.until.Sub(now))
	}
	return time.Now().Add(wait)
}
