package callback

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrSilent is why a call is over whose app sent no heartbeat in time.
var ErrSilent = errors.New("the app sent no heartbeat")

// ErrOver is why a call is over that has ended otherwise: by a report, or by an answer other than 202.
var ErrOver = errors.New("the run is over")

// errLate is why a report is refused that came when the lease had ended.
var errLate = errors.New("the lock had ended before the report came")

// Call is one attempt of a run that its app may end by itself.
type Call struct {
	of        *Runs
	name      name
	Heartbeat time.Duration // the app has to send one at least this often
	lasts     func(time.Duration) bool

	mu     sync.Mutex
	heard  time.Time     // of the last heartbeat, whatever its answer, or of the app's 202. Written by beat and Wait
	unsure bool          // the last heartbeat was refused because of the lease. Written by beat
	until  time.Time     // the app may work until then; zero = no heartbeat was answered with leave. Written by beat
	why    error         // the call is over, or has to end; nil = it goes on. The first one stays
	report *Report       // that ended the call; nil = none
	closed bool          // it takes no report any more
	ended  chan struct{} // closed with the report
}

// URL is where the app reports: it adds /heartbeat or /finish.
func (c *Call) URL() string { return "http://" + c.of.address + "/v1/runs/" + c.name.run }

// Token is what the app proves itself with.
func (c *Call) Token() string { return c.name.token }

// Beaten reports whether a heartbeat was answered without an error, or the app has finished the run. So the app has
// accepted it, even if the answer to the call was lost.
func (c *Call) Beaten() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isBeaten()
}

// isBeaten is Beaten for a caller that holds mu.
func (c *Call) isBeaten() bool { return !c.until.IsZero() || c.report != nil }

func (c *Call) beat() (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return 0, &OverError{c.why}
	}
	now := time.Now() // before the lease is asked
	c.heard = now
	if c.unsure = c.lasts != nil && !c.lasts(c.Heartbeat); c.unsure {
		return 0, ErrUnsure
	}
	c.until = now.Add(c.Heartbeat)
	return c.Heartbeat, nil
}

func (c *Call) finish(report Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.report != nil && *c.report == report: // its answer was lost
		return nil
	case c.closed || c.report != nil:
		return &OverError{c.why}
	case c.lasts != nil && !c.lasts(0): // the process stood still, and the run may go on elsewhere
		return &OverError{errLate}
	}
	c.report = &report
	c.end(ErrOver)
	close(c.ended)
	return nil
}

// end refuses heartbeats from now on. The caller holds mu.
func (c *Call) end(why error) {
	if c.why == nil {
		c.why = why
	}
}

// Close refuses all reports from now on.
func (c *Call) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.end(ErrOver)
	c.of.forget(c.name)
}

// Wait waits for the end of a run that the app has accepted, and returns the app's report.
//
// If no heartbeat comes in time, Wait closes the call and returns ErrSilent. The time of the first one counts from now.
// An app whose heartbeat is refused because of the lease is not silent: ctx will tell if the lease is lost.
//
// If ctx ends, Wait refuses heartbeats. It then waits as long as the app may work by the last answered one, takes a
// report until then, and returns the cause of ctx.
func (c *Call) Wait(ctx context.Context) (Report, error) {
	c.mu.Lock()
	if c.heard.IsZero() {
		c.heard = time.Now()
	}
	c.mu.Unlock()
	told := ctx.Done()
	for {
		c.mu.Lock()
		left := time.Until(c.deadline(told == nil)) // as far as is known now
		c.mu.Unlock()
		select {
		case <-c.ended:
			return *c.report, nil
		case <-told:
			told = nil
			c.mu.Lock()
			c.end(context.Cause(ctx))
			c.mu.Unlock()
		case <-time.After(left):
			if why := c.expire(ctx, told == nil); why != nil {
				return Report{}, why
			}
		}
	}
}

// isUnsure reports whether the app has heard last that the lease may end.
func (c *Call) isUnsure() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsure
}

// deadline is when the wait for the app is over: it was told to end, and must have stopped, or it is silent. An app
// that never had leave to work has nothing to stop. The caller holds mu.
func (c *Call) deadline(told bool) time.Time {
	if told {
		return c.until
	}
	return c.heard.Add(c.Heartbeat)
}

// expire closes the call, and returns why, if the wait for the app is over.
func (c *Call) expire(ctx context.Context, told bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report != nil || time.Now().Before(c.deadline(told)) {
		return nil
	}
	c.closed = true
	if told {
		return context.Cause(ctx)
	}
	c.end(fmt.Errorf("%w within %s", ErrSilent, c.Heartbeat))
	return c.why
}
