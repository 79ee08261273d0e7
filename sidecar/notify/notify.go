// Package notify tells other services about runs, in two ways. A Ping goes out for each run, so that a service can
// notice a missing one: a dead man's switch, in the form that Healthchecks expects. A Message is for people, and goes
// out when something changes.
//
// Send and Tell never wait. The pings of a job go out one after another, in the order in which they were sent: after
// two runs, the later one has the last word. So do its messages, beside its pings. The number that waits is bounded,
// and so is the time spent on each. Log lines name the job and the host, and no other part of a URL: with the rest
// anyone could ping it.
//
// A ping may not arrive, or arrive twice. If too many wait, the oldest is dropped. After three attempts a ping is given
// up. An attempt whose answer was lost is made again. The receiver's own alarm covers these cases, and the death of
// this process too: it goes off because no ping came. The same can happen to a message, and no alarm covers it: a
// receiver can tell by its id that it came twice.
package notify

import (
	"cmp"
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

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute/call"
)

const (
	mostWaiting = 2000 // start and end of a thousand jobs that fall due at once
	mostAtOnce  = 8    // calls; a service that hangs holds one for each of its jobs

	attemptTimeout = 10 * time.Second
	attempts       = 3
	firstBackoff   = time.Second // four times as long before the third attempt
	mostBackoff    = 15 * time.Second

	// flushTime is how long waiting pings may still be sent at the end of the process.
	flushTime = 2 * time.Second

	// reportEvery keeps the log readable while more is dropped than sent.
	reportEvery = 10 * time.Second
)

// Started is the outcome of a run that has only begun. The other outcomes are those of the metric runs_total.
const Started = "started"

// Ping reports the start or the end of a run.
type Ping struct {
	Job     string
	To      string // the URL of the check, which gets successes; "" = none
	Run     string // the run's uuid, sent as rid: by it the receiver matches start and end
	Outcome string // Started, or how the run ended; it is the text of the ping
	Failed  bool   // the run failed; after "shutdown" it has not if another replica runs it again
}

// signal is what the path of the check's URL gets added, and whether the ping is sent. An outcome is neither a success
// nor a failure if another run makes up for it: the app was busy with the work already, a newer tick took its place, or
// another replica runs it again. The same holds for a cancelled run: an operator knows of it. If no run makes up for
// it, the receiver's alarm goes off.
func (p Ping) signal() (path string, sent bool) {
	switch {
	case p.To == "", p.Outcome == "shutdown" && !p.Failed:
	case p.Outcome == Started:
		return "/start", true
	case p.Outcome == "succeeded":
		return "", true
	case slices.Contains(
		[]string{"failed", "timed_out", "lost_lock", "not_started", "interrupted", "shutdown"}, p.Outcome):
		return "/fail", true
	}
	return "", false
}

// lane has the pings of a job in their order.
func (p Ping) lane() string { return p.Job }

// request keeps the query of the check's URL as it was written, and adds the run to it.
func (p Ping) request(time.Time) (request, error) {
	path, query, _ := strings.Cut(p.To, "?")
	if more, _ := p.signal(); more != "" {
		path = strings.TrimRight(path, "/") + more
	}
	if query != "" && !strings.HasSuffix(query, "&") {
		query += "&"
	}
	return request{url: path + "?" + query + "rid=" + url.QueryEscape(p.Run), body: p.Outcome}, nil
}

func (p Ping) lost() (string, []any) {
	return "a ping did not arrive", []any{"job", p.Job, "outcome", p.Outcome}
}

// note is what waits to be sent: a Ping or a Message.
type note interface {
	lane() string                           // notes of one lane go out one after another
	request(now time.Time) (request, error) // made anew for each attempt; no part of the error is a secret
	lost() (message string, attrs []any)    // the log line if it did not arrive
}

// request is one attempt to send a note.
type request struct {
	url    string
	header http.Header // beside the usual ones
	body   string
}

// Pinger sends pings and messages. While none waits it has no goroutine, timer or connection.
type Pinger struct {
	log  *slog.Logger
	post func(ctx context.Context, r request) (code int, again time.Duration, err error)

	workers sync.WaitGroup

	mu       sync.Mutex
	sending  context.Context // of the calls; nil = Run has not begun, or its ctx has ended
	waiting  []note          // the oldest first
	busy     map[string]bool // lanes with a note on its way
	dropped  int             // since the last log line about it
	reported time.Time
}

// New returns a Pinger that sends nothing until its Run is called. log may be nil; version is for User-Agent.
func New(log *slog.Logger, version string) *Pinger {
	return &Pinger{
		log:  cmp.Or(log, slog.New(slog.DiscardHandler)),
		busy: map[string]bool{},
		post: func(ctx context.Context, r request) (int, time.Duration, error) {
			return call.Post(ctx, r.url, r.header, r.body, version)
		},
	}
}

// Send has a ping sent if it has a receiver, and returns at once. Pings that are sent before Run wait for it. Pings
// that are sent after the end of Run's context are lost. On a nil Pinger, Send does nothing.
func (p *Pinger) Send(ping Ping) {
	if _, sent := ping.signal(); sent {
		p.add(ping)
	}
}

// Tell has a message sent as Send does a ping.
func (p *Pinger) Tell(m Message) { p.add(m) }

func (p *Pinger) add(n note) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == mostWaiting {
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.dropped++
	}
	p.waiting = append(p.waiting, n)
	p.start(p.sending)
}

// Run sends pings until ctx ends, and then the waiting ones for at most two seconds more. It must outlive the runs.
func (p *Pinger) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p.mu.Lock()
	p.sending = sending
	for p.start(sending) {
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

// start begins with the oldest note of a lane that has none on its way, if there is one. The lock is held.
func (p *Pinger) start(ctx context.Context) bool {
	if ctx == nil || ctx.Err() != nil || len(p.busy) == mostAtOnce {
		return false
	}
	i := slices.IndexFunc(p.waiting, func(n note) bool { return !p.busy[n.lane()] })
	if i < 0 {
		return false
	}
	n := p.waiting[i]
	if p.waiting = slices.Delete(p.waiting, i, i+1); len(p.waiting) == 0 {
		p.waiting = nil // a burst may have made it large
	}
	p.busy[n.lane()] = true
	p.workers.Go(func() { p.serve(ctx, n) })
	return true
}

// serve sends a note, and begins with the next one. From time to time it logs how many were dropped.
func (p *Pinger) serve(ctx context.Context, n note) {
	host, err := p.deliver(ctx, n)
	over := ctx.Err() != nil // then Run logs the lost pings
	if err != nil && !over {
		message, attrs := n.lost()
		p.log.Warn(message, append(attrs, "host", host, "err", err)...)
	}
	p.mu.Lock()
	delete(p.busy, n.lane())
	dropped, left := 0, len(p.waiting)
	switch now := time.Now(); {
	case over && err != nil:
		p.dropped++
	case !over && p.dropped > 0 && now.Sub(p.reported) >= reportEvery:
		dropped, p.dropped, p.reported = p.dropped, 0, now
	}
	p.start(ctx)
	p.mu.Unlock()
	if dropped > 0 {
		p.log.Warn("pings were dropped: too many wait", "pings", dropped, "waiting", left)
	}
}

// deliver makes up to three attempts, and returns why the last one failed, and the host that it was for.
func (p *Pinger) deliver(ctx context.Context, what note) (host string, err error) {
	backoff := firstBackoff
	for n := 1; ; n++ {
		var code int
		var again time.Duration
		var r request
		if r, err = what.request(time.Now()); err == nil {
			code, again, err = p.attempt(ctx, r)
		}
		if err == nil && code >= 200 && code < 300 {
			return "", nil
		}
		host = ""
		if to, bad := url.Parse(r.url); bad == nil {
			host = to.Host // no other part of a URL may be logged
		}
		if err == nil {
			err = errors.New(strings.TrimSpace(fmt.Sprintf("it answered %d %s", code, http.StatusText(code))))
		}
		if n == attempts || code != 0 && code != http.StatusTooManyRequests && code < 500 {
			return host, err
		}
		if !beat.Sleep(ctx, min(max(backoff, again), mostBackoff)) {
			return host, err
		}
		backoff *= 4
	}
}

func (p *Pinger) attempt(ctx context.Context, r request) (int, time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTimeout, fmt.Errorf("no answer within %s", attemptTimeout))
	defer cancel()
	return p.post(ctx, r)
}
