// Package notify tells other services how runs go, so that one of them can miss what should have come: a dead man's
// switch, spoken to as Healthchecks wants it.
//
// What it guarantees: Send never waits for anything. A job's pings go out one after another, in the order in which they
// were sent, so that of two runs the later one has the last word. What it keeps is bounded, and so is the time that it
// spends on a ping. Its log lines name the job and the host, and nothing else of a URL: who knows the rest can ping it.
//
// What it does not guarantee: that a ping arrives, or only once. When too many wait the oldest is dropped, after three
// attempts one is given up, and an attempt whose answer was lost is made again. The receiver's own alarm is what covers
// that, and the death of this process too: it goes off because nothing came.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute/call"
)

const (
	mostWaiting = 2000 // start and end of a thousand jobs that fall due at once
	mostAtOnce  = 8    // calls; a service that hangs holds one for each of its jobs

	attemptTimeout = 10 * time.Second
	attempts       = 3
	firstBackoff   = time.Second // four times as long before the third attempt
	mostBackoff    = 15 * time.Second

	// flushTime is what is left, at the end of the process, for pings that wait.
	flushTime = 2 * time.Second

	// reportEvery keeps the log readable while more is dropped than sent.
	reportEvery = 10 * time.Second
)

// Started is the outcome of a run that has only begun. The others are those of the metric runs_total.
const Started = "started"

// Ping is what there is to tell of a run.
type Ping struct {
	Job     string
	To      config.Notify // who wants to hear of which outcome
	Run     string        // the run's uuid; it goes along as rid, by which the receiver finds the start that belongs to an end
	Outcome string        // Started, or how the run ended; it is the text of the ping
	Failed  bool          // the run failed: what the outcome "shutdown" does not tell, since under at-least-once it runs again
}

// url is who is to hear of the ping, "" = nobody. Neither a success nor a failure is what another run makes up for: the
// app was busy with it already, a newer tick took its place, another replica runs it again. If none does, the receiver's
// alarm goes off.
func (p Ping) url() string {
	switch p.Outcome {
	case Started:
		return p.To.Start
	case "succeeded":
		return p.To.Success
	case "failed", "timed_out", "lost_lock", "not_started", "interrupted":
		return p.To.Failure
	case "shutdown":
		if p.Failed {
			return p.To.Failure
		}
	}
	return ""
}

// withRun adds the run to the query, and leaves the rest as it was written.
func withRun(raw, run string) string {
	rid := "rid=" + url.QueryEscape(run)
	_, query, found := strings.Cut(raw, "?")
	switch {
	case !found:
		return raw + "?" + rid
	case query == "" || strings.HasSuffix(query, "&"):
		return raw + rid
	}
	return raw + "&" + rid
}

// Pinger sends pings. While none waits it has no goroutine, timer or connection.
type Pinger struct {
	log  *slog.Logger
	post func(ctx context.Context, url, text string) (code int, again time.Duration, err error)

	workers sync.WaitGroup

	mu       sync.Mutex
	sending  context.Context // of the calls; nil = Run has not begun, or its ctx has ended
	waiting  []Ping          // the oldest first
	busy     map[string]bool // jobs of which a ping is on its way: as many as there are goroutines
	dropped  int             // since it was last said
	reported time.Time
}

// New returns a Pinger that sends nothing until its Run is called. log may be nil; version is for User-Agent.
func New(log *slog.Logger, version string) *Pinger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Pinger{
		log:  log,
		busy: map[string]bool{},
		post: func(ctx context.Context, url, text string) (int, time.Duration, error) {
			return call.Post(ctx, url, text, version)
		},
	}
}

// Send has a ping sent, when somebody wants to hear of it, and returns at once. What is sent before Run waits for it;
// what is sent after the end of its context is lost. On a nil Pinger it does nothing.
func (p *Pinger) Send(ping Ping) {
	if p == nil || ping.url() == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == mostWaiting {
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.dropped++
	}
	p.waiting = append(p.waiting, ping)
	p.start()
}

// Run sends pings until ctx ends, and those that wait then for at most two seconds more. It is to outlive the runs.
func (p *Pinger) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p.mu.Lock()
	p.sending = sending
	for p.start() {
	}
	p.mu.Unlock()

	<-ctx.Done()
	p.mu.Lock()
	p.sending = nil
	p.mu.Unlock()
	over := time.AfterFunc(flushTime, stop)
	defer over.Stop()
	p.workers.Wait()

	p.mu.Lock()
	lost := p.dropped + len(p.waiting)
	p.dropped, p.waiting = 0, nil
	p.mu.Unlock()
	if lost > 0 {
		p.log.Warn("pings were lost: the replica ends", "pings", lost)
	}
	return nil
}

// start begins with a ping, if there is one to begin with. The lock is held.
func (p *Pinger) start() bool {
	if p.sending == nil || len(p.busy) == mostAtOnce {
		return false
	}
	ping, ok := p.next()
	if ok {
		ctx := p.sending
		p.workers.Go(func() { p.serve(ctx, ping) })
	}
	return ok
}

// next takes the oldest ping of a job that has none on its way. The lock is held.
func (p *Pinger) next() (Ping, bool) {
	i := slices.IndexFunc(p.waiting, func(w Ping) bool { return !p.busy[w.Job] })
	if i < 0 {
		return Ping{}, false
	}
	ping := p.waiting[i]
	if p.waiting = slices.Delete(p.waiting, i, i+1); len(p.waiting) == 0 {
		p.waiting = nil // a burst may have made it large
	}
	p.busy[ping.Job] = true
	return ping, true
}

// serve sends a ping, and then others for as long as there are any.
func (p *Pinger) serve(ctx context.Context, ping Ping) {
	for more := true; more; {
		err := p.deliver(ctx, ping)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("a ping did not arrive", "job", ping.Job, "outcome", ping.Outcome, "host", hostOf(ping.url()), "err", err)
		}
		var dropped, left int
		ping, more, dropped, left = p.done(ctx, ping, err)
		if dropped > 0 {
			p.log.Warn("pings were dropped: too many wait", "pings", dropped, "waiting", left)
		}
	}
}

// done gives back what serve has sent and takes what it sends next. Now and then it tells how many pings were dropped.
func (p *Pinger) done(ctx context.Context, sent Ping, err error) (next Ping, more bool, dropped, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, sent.Job)
	if ctx.Err() != nil { // Run says what is lost
		if err != nil {
			p.dropped++
		}
		return Ping{}, false, 0, 0
	}
	if now := time.Now(); p.dropped > 0 && now.Sub(p.reported) >= reportEvery {
		dropped, left = p.dropped, len(p.waiting)
		p.dropped, p.reported = 0, now
	}
	next, more = p.next()
	return next, more, dropped, left
}

// deliver makes up to three attempts, and returns why the last one failed.
func (p *Pinger) deliver(ctx context.Context, ping Ping) error {
	to, backoff := withRun(ping.url(), ping.Run), firstBackoff
	for n := 1; ; n++ {
		code, again, err := p.attempt(ctx, to, ping.Outcome)
		if err == nil && code >= 200 && code < 300 {
			return nil
		}
		if err == nil {
			err = errors.New(strings.TrimSpace(fmt.Sprintf("it answered %d %s", code, http.StatusText(code))))
		}
		if n == attempts || code != 0 && code != http.StatusTooManyRequests && code < 500 {
			return err
		}
		select {
		case <-time.After(min(max(backoff, again), mostBackoff)):
		case <-ctx.Done():
			return err
		}
		backoff *= 4
	}
}

func (p *Pinger) attempt(ctx context.Context, to, text string) (int, time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTimeout, fmt.Errorf("no answer within %s", attemptTimeout))
	defer cancel()
	return p.post(ctx, to, text)
}

// hostOf is what of a URL may be said.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
