package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// AnyJob is what Listen says when it begins to hear: any job may have been resumed before.
const AnyJob = "*"

// Listen hears the nudges of the service's replicas until ctx ends. It calls due with the job that was resumed, with ""
// when something became due now or the dynamic jobs were changed, which the next Look tells apart, and with AnyJob each
// time that it begins to hear, at first and after its connection was lost. It has the keeper of a run that is to be
// replaced ask at once. A nudge that is lost, Redis being away say, costs only the time until somebody looks by himself.
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

// hear listens on one connection for as long as it lasts. True when it was of use: one that is only ever begun is begun
// anew more and more seldom.
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
			asked = false
		case errors.As(err, &late) && late.Timeout() && !asked && events.Ping(ctx) == nil:
			asked = true
		default:
			return heard
		}
		switch m := m.(type) {
		case *redis.Subscription:
			due(AnyJob)
		case *redis.Pong:
			heard = true
		case *redis.Message:
			heard = true
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

// CheckLeases renews each kept lease at once. A run whose lock Redis has lost then ends now, and not at its next renewal.
func (s *Store) CheckLeases() { s.kept.nudge("") }

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

// has tells whether the lease of a run is being kept.
func (k *keepers) has(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l := range k.leases {
		if l.claim.Run == run {
			return true
		}
	}
	return false
}

// nudge has the leases of a job asked for at once; of all jobs with "".
func (k *keepers) nudge(job string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l := range k.leases {
		if job == "" || l.claim.Job == job {
			select {
			case l.nudged <- struct{}{}:
			default: // it is about to ask
			}
		}
	}
}
