package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Listen hears the nudges of the service's replicas until ctx ends: it calls due when something became due now (of the job
// that was resumed, or "" for any) or the dynamic jobs were changed, which the next Look tells apart, and has the keeper of a run that is to be replaced ask at once. A nudge that is lost, Redis being away say, costs only the time
// until somebody looks by himself.
func (s *Store) Listen(ctx context.Context, due func(job string)) {
	for try := 0; ; try++ {
		if s.hear(ctx, due) {
			try = 0
		}
		if !pause(ctx, backoff(try)) {
			return
		}
	}
}

// silence is how long a channel may be silent before its connection is doubted.
const silence = 5 * time.Second

// hear listens on one connection for as long as it lasts. True when it was one at all.
func (s *Store) hear(ctx context.Context, due func(job string)) (heard bool) {
	events := s.burst.rdb.Subscribe(ctx, s.keys.events)
	defer events.Close()
	defer context.AfterFunc(ctx, func() { _ = events.Close() })() // which ends a Receive
	asked := false
	for {
		m, err := events.ReceiveTimeout(ctx, silence)
		var late interface{ Timeout() bool }
		switch {
		case err == nil:
			heard, asked = true, false
		case errors.As(err, &late) && late.Timeout() && !asked && events.Ping(ctx) == nil:
			asked = true
		default:
			return heard
		}
		if m, ok := m.(*redis.Message); ok {
			if job, ok := strings.CutPrefix(m.Payload, "stop "); ok {
				s.kept.nudge(job)
			} else if m.Payload == "jobs" {
				due("")
			} else {
				due(strings.TrimPrefix(strings.TrimPrefix(m.Payload, "due"), " "))
			}
		}
	}
}

// keepers are the leases that are being kept, for those who have something to tell them.
type keepers struct {
	mu     sync.Mutex
	leases map[*Lease]bool
}

func (k *keepers) add(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases == nil {
		k.leases = map[*Lease]bool{}
	}
	k.leases[l] = true
}

func (k *keepers) remove(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.leases, l)
}

// nudge has the leases of a job asked for at once.
func (k *keepers) nudge(job string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l := range k.leases {
		if l.claim.Job == job {
			select {
			case l.nudged <- struct{}{}:
			default: // it is about to ask
			}
		}
	}
}
