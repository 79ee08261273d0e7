package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

// heartbeat reports in Redis how this replica fares, for operators and for the rendezvous.
type heartbeat struct {
	store      *service.Store
	clock      *clock
	rendezvous *rendezvous
	log        *slog.Logger
	self       service.Replica // what does not change
	status     func() status
	atRest     func() bool // others need not be known at once
	nudges     *nudges
	spec       func(job string) *spec
	told       chan struct{} // holds one element when another status has to be reported at once

	// The goroutine of run alone uses these.
	beats   int
	unread  bool // the others' heartbeats could not be read the last time
	read    time.Time
	sent    status
	strange string        // the others of another environment, as meet has logged them
	twin    time.Time     // when another process last used this name; zero = never, or not lately
	apart   time.Duration // how long after the beat its heartbeats come, while it has a twin

	beatRefused atomic.Pointer[error] // Redis' answer to the last heartbeat; of nil = it took it, or gave none

	mu    sync.Mutex
	skips map[string]service.Skip  // by job, the newest that was not for another replica's fire
	ran   map[string]service.Entry // by job that runs on every replica, its newest run here
}

// errNoAnswer is why a replica takes nothing at first.
var errNoAnswer = errors.New("no answer from Redis yet")

// status is how a replica fares, as a heartbeat has it.
type status struct {
	table  string // its hash
	ready  string // why the replica takes no ticks; "" = it does
	reload string // why the table before is still in force; "" = it is not
}

// run sends heartbeats until ctx ends, and reads the others' before, at rest once a minute. The second one comes
// early, and the first five read, since replicas may have begun at the same moment.
func (h *heartbeat) run(ctx context.Context, draining <-chan struct{}) {
	var next time.Time
	for ctx.Err() == nil {
		if h.sent != h.status() || !time.Now().Before(next) {
			next = time.Now().Add(lookEvery)
			others, process, unread := []service.Replica(nil), "", error(nil)
			reads := h.beats < 5 || h.unread || !h.atRest() || time.Since(h.read) >= time.Minute
			if reads {
				if others, process, unread = h.rendezvous.readPeers(ctx); unread == nil {
					h.read = time.Now()
					h.noteTwin(ctx, process)
				}
			}
			beaten := h.beat(ctx) == nil
			if !beaten || unread != nil {
				h.store.Doubt() // Redis may be away, or another one by now
				h.nudges.nudge()
			}
			if beaten {
				if unread != nil && ctx.Err() == nil && !h.unread {
					h.log.Warn("the heartbeats of the replicas could not be read", "err", unread)
				}
				if h.unread = unread != nil; reads && !h.unread {
					h.meet(others)
				}
				if h.beats++; h.beats > 1 {
					next = time.Now().Add(beat.Near(h.clock.wall(), beat.Rest) + h.apart)
				}
			}
		}
		select {
		case <-time.After(time.Until(next)):
		case <-h.told:
		case <-draining:
			draining = nil
		case <-ctx.Done():
		}
	}
}

func (h *heartbeat) beat(ctx context.Context) error {
	offset, ok := h.clock.offset()
	if !ok {
		return errNoAnswer // readers would take our clock to be right
	}
	r, now := h.self, h.status()
	r.Table, r.Ready, r.Reload = now.table, now.ready, now.reload
	r.Offset, r.Skips, r.Ran, r.Twin = offset, h.skipped(), h.results(), !h.twin.IsZero()
	err := h.store.Beat(ctx, r)
	if err == nil {
		h.sent = now
	}
	h.beatRefused.Store(new(service.Refused(err)))
	return err
}

// noteTwin notes whether another process has sent a heartbeat under this one's name since its own last one, and logs it
// once. A heartbeat from before this process' first one may be that of its predecessor. Of two that beat together, the
// one that writes first meets the other. It keeps its distance from then on, and is met with the other's next beat.
func (h *heartbeat) noteTwin(ctx context.Context, process string) {
	if h.self.Process == "" || h.beats == 0 {
		return
	}
	if process != "" && process != h.self.Process {
		if h.twin.IsZero() {
			h.log.Warn("another process has the same name: give each its own name with --replica or POD_NAME",
				"replica", h.self.Name)
			h.apart = time.Second/10 + time.Duration(rand.Int64N(3e8))
			beat.Sleep(ctx, h.apart)
		}
		h.twin = time.Now()
	}
	if time.Since(h.twin) > service.HeartbeatTimeout {
		h.twin, h.apart = time.Time{}, 0
	}
}

// meet logs at first whom this replica has joined, and from then on each change of those that belong elsewhere: whoever
// has the service's name and the address of Redis takes its ticks.
func (h *heartbeat) meet(others []service.Replica) {
	var names, strange []string
	for _, r := range others {
		names = append(names, r.Name)
		if r.Environment != h.self.Environment {
			strange = append(strange, fmt.Sprintf("%s (%q)", r.Name, r.Environment))
		}
	}
	if h.beats == 0 && len(names) > 0 {
		h.log.Info("joined the other replicas of the service", "replicas", strings.Join(names, ", "))
	}
	if now := strings.Join(strange, ", "); now != h.strange {
		h.strange = now
		if now != "" {
			h.log.Warn("replicas of another environment share this service: give each its own service name or database",
				"environment", h.self.Environment, "others", now)
		}
	}
}

// firstProblem is the text of an error. If a table has several problems, it is the first one and the number of the
// others.
func firstProblem(err error) string {
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		return err.Error()
	}
	p := problems[0]
	p.File, p.Source, p.Hint = filepath.Base(p.File), "", ""
	if n := len(problems) - 1; n > 0 {
		return fmt.Sprintf("%s, and %s", p, text.Plural(n, "more problem"))
	}
	return p.String()
}

// leave takes the heartbeat away: the replica ends in order.
func (h *heartbeat) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), lookEvery)
	defer cancel()
	_ = h.store.Leave(ctx, h.self.Name) // or it is taken for silent, and forgotten in a day
}

func (h *heartbeat) noteSkip(w *wake, r reason) {
	if r == firedElsewhere || service.IsTimer(w.spec.Name) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skips[w.spec.Name] = service.Skip{Tick: w.tick, Reason: string(r), At: h.clock.Now()}
}

// skipOf is the newest skip of a job.
func (h *heartbeat) skipOf(job string) (service.Skip, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	skip, ok := h.skips[job]
	return skip, ok
}

// forget drops the skips and runs of a job that has left.
func (h *heartbeat) forget(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.skips, job)
	delete(h.ran, job)
}

// result keeps how a job's newest run here ended, which runs on every replica: no ledger has it.
func (h *heartbeat) result(e service.Entry) {
	e.Detail = truncate(e.Detail, maxResult)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran[e.Job] = e
}

// maxResult bounds the text of a failure in a heartbeat: the history has more.
const maxResult = 200

// results are the newest runs of the jobs with the guarantee every-replica.
func (h *heartbeat) results() map[string]service.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.ran, func(name string, _ service.Entry) bool {
		sp := h.spec(name)
		return sp == nil || sp.hasFates()
	})
	return maps.Clone(h.ran)
}

// skipped are the newest skips of the jobs. A wake that still waited when its job left is skipped afterwards.
func (h *heartbeat) skipped() map[string]service.Skip {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.skips, func(name string, _ service.Skip) bool { return h.spec(name) == nil })
	return maps.Clone(h.skips)
}
