package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// AnyJob is passed to the callback of Listen each time the subscription is established. Messages sent before that are
// lost, so any job may have been resumed.
const AnyJob = "*"

// RunBegan is passed to the callback of Listen when a run has begun. Of runs of due members that is only the first.
const RunBegan = "+"

// Listen receives the nudges of the service's replicas until ctx ends. It calls due with the name of a job that was
// paused or resumed, with "" when something became due now, of which the next Look tells, or the subscription broke,
// with AnyJob each time that it is established, at first and after its connection was lost, and with RunBegan when a
// run has begun. It calls claimed instead with each claim of a table's tick, unless claims wait for replicas of Redis:
// a failover could forget the claim. If a run is being replaced, Listen has its keeper ask at once. A lost nudge, as
// when Redis is away, costs only the time until the next Look, or a question.
func (s *Store) Listen(ctx context.Context, due func(job string), claimed func(lock.Heard)) {
	for try := 0; ; try++ {
		if s.hear(ctx, due, claimed) {
			try = 0
			due("") // Redis may be away
		}
		if !beat.Sleep(ctx, rds.Backoff(try)) {
			return
		}
	}
}

// Listens reports whether messages reach this replica, as far as it knows.
func (s *Store) Listens() bool { return s.listens.Load() }

// Doubt has Listens wait for a message, or for the answer to a ping: Redis was away, and perhaps the subscription with
// it. Redis may have lost this replica's report, too.
func (s *Store) Doubt() {
	s.listens.Store(false)
	s.reportGone.Store(false)
}

// A channel may be silent for so long before hear checks its connection with its next wake. At rest messages are few,
// and each ping costs. Many proxies cut a connection that was silent for 30 seconds.
const silence, silenceAtRest = time.Second, 22 * time.Second

// hear listens on one connection for as long as it lasts, and returns whether a nudge or a pong came on it. Listen
// waits longer and longer between connections that brought neither.
func (s *Store) hear(ctx context.Context, due func(job string), claimed func(lock.Heard)) (heard bool) {
	events := s.redis.Subscribe(ctx)
	defer events.Close()
	defer context.AfterFunc(ctx, func() { _ = events.Close() })() // Close ends a Receive
	defer s.Doubt()
	asked, last := false, time.Now()
	for {
		m, err := events.ReceiveTimeout(ctx, beat.Near(time.Now(), beat.Rest))
		var late interface{ Timeout() bool }
		switch {
		case err == nil:
			asked, last = false, time.Now()
			s.listens.Store(true)
		case !errors.As(err, &late) || !late.Timeout() || asked:
			return heard
		case s.Listens() && (time.Since(last) < silence || s.Resting.Load() && time.Since(last) < silenceAtRest):
		case events.Ping(ctx) == nil:
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
			switch what, about, _ := strings.Cut(m.Payload, " "); what {
			case "stop":
				s.Locks.CheckLeases(about)
			case "run":
				if claim, ok := lock.ParseHeard(about, s.redis.Boottime()); ok && s.redis.WaitReplicas() == 0 {
					claimed(claim)
				} else {
					due(RunBegan)
				}
			case "due":
				due(about)
			}
		}
	}
}
