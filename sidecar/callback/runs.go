package callback

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// kept is how many calls that are over a replica remembers. An app that repeats its report then gets the same answer.
const kept = 1000

// MaxDetail is how many bytes are kept of the detail of a report: calls that are over keep theirs.
const MaxDetail = execute.MaxOutput

// ErrUnknown is the answer to a report with a run or token that this replica does not know.
var ErrUnknown = errors.New("this replica has no such run, or the token is not the run's")

// ErrUnsure is the answer to a heartbeat whose time the lease may not last. The lease may be renewed in a moment.
var ErrUnsure = errors.New("the lock may end within a heartbeat: it has not been renewed in time")

// OverError is the answer to a report for a run that is over, or has to end.
type OverError struct{ error }

// Unwrap returns why.
func (e *OverError) Unwrap() error { return e.error }

// Outcome says how the work on a run ended.
type Outcome string

// The outcomes that an app can report.
const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted" // the app stopped before the end of the work: it had to, or it shuts down
)

// Known reports whether an app can report the outcome.
func (o Outcome) Known() bool { return o == Succeeded || o == Failed || o == Interrupted }

// Report is what an app says of its run at the end.
type Report struct {
	Outcome Outcome
	Detail  string // for people; "" = nothing. Its first MaxDetail bytes are kept
}

// Runs are the runs of one replica that apps may end by themselves. It is safe for concurrent use.
type Runs struct {
	address string // of the API: host:port

	mu    sync.Mutex
	calls map[name]*Call
	over  []name // of calls that are closed, the oldest first
}

// Executor makes attempts of runs that their apps end. Runs does.
type Executor interface {
	Execute(context.Context, execute.Run, *config.Async, func(*Call) (execute.Result, bool)) execute.Result
}

// name tells calls apart. The token is random, so it is no matter how long a look-up takes.
type name struct{ run, token string }

// New returns the runs of a replica whose API is at this address, host:port.
func New(address string) *Runs { return &Runs{address: address, calls: map[name]*Call{}} }

// Open makes an attempt of a run known, with a token of its own. The app has to send a heartbeat at least that often.
// lasts reports whether the lease of the run lasts for at least a time; nil = it always does. The caller closes the
// Call.
func (r *Runs) Open(run string, heartbeat time.Duration, lasts func(time.Duration) bool) *Call {
	c := &Call{of: r, name: name{run, rand.Text()}, Heartbeat: heartbeat, lasts: lasts, ended: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c.name] = c
	return c
}

// Beat says that the app works on the run. It returns how long the app may go on, counted from when it sent the
// heartbeat. The error is ErrUnknown, ErrUnsure or an *OverError.
func (r *Runs) Beat(run, token string) (time.Duration, error) {
	c, err := r.find(run, token)
	if err != nil {
		return 0, err
	}
	return c.beat()
}

// Finish ends the run as the app says. The same report again is no error. The error is ErrUnknown or an *OverError.
func (r *Runs) Finish(run, token string, report Report) error {
	c, err := r.find(run, token)
	if err != nil {
		return err
	}
	if len(report.Detail) > MaxDetail {
		report.Detail = strings.Clone(strings.ToValidUTF8(report.Detail[:MaxDetail], "")) // without half a character
	}
	return c.finish(report)
}

func (r *Runs) find(run, token string) (*Call, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.calls[name{run, token}]; c != nil {
		return c, nil
	}
	return nil, ErrUnknown
}

// forget keeps a closed call for a while.
func (r *Runs) forget(n name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = append(r.over, n); len(r.over) > kept {
		delete(r.calls, r.over[0])
		r.over = r.over[1:]
	}
}
