package sidecar

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/sidecar/service"
)

// standing is how the replica stands with Redis, for the log, the metrics and the readiness. The looker's alone, except where a
// field says otherwise.
type redisStatus struct {
	store   *service.Store
	log     *slog.Logger
	metrics *metrics
	timers  *job         // stands for all timers: the first that is registered
	about   func() []any // what the log tells of the replica

	trouble      trouble
	up           bool
	answeredOnce atomic.Bool // others ask for it
	announced    string      // what announce has said last
}

// answered says when Redis is of no use, and when it is again. True when it has come: back, or for the first time.
func (s *redisStatus) answered(err error) (came bool) {
	came = err == nil && (!s.up || !s.answeredOnce.Load())
	switch {
	case err == nil && !s.up:
		s.log.Info("Redis answers")
		s.trouble.clear()
	case err != nil:
		s.trouble.report(s.log, diagnosis.Of(err))
	}
	s.up = err == nil
	s.metrics.redisUp.Set(0)
	if s.up {
		s.metrics.redisUp.Set(1)
	}
	return came
}

// registered says when Redis answers and takes no jobs, and when it takes them again: it is a replica, or its user may not write.
func (s *redisStatus) registered(ctx context.Context, refused string, err error) {
	switch {
	case err != nil:
		s.trouble.report(s.log, diagnosis.Of(err), "job", refused)
	case ctx.Err() == nil && s.trouble.says != "":
		s.log.Info("Redis takes the jobs")
		s.trouble.clear()
	}
}

// checkFitness says what is wrong with the Redis that has come: it may be another one than before.
func (s *redisStatus) checkFitness(ctx context.Context) {
	problems, err := s.store.CheckServer(ctx)
	if err != nil {
		s.log.Warn("Redis could not be checked", "err", err)
		return
	}
	for _, p := range problems {
		s.log.Warn("Redis is not fit for locks", "problem", p)
	}
	s.metrics.redisFit.Set(0)
	if len(problems) == 0 {
		s.metrics.redisFit.Set(1)
	}
}

// What a replica says of itself when it has started.
const (
	taking  = "taking ticks"
	waiting = "waiting for Redis"
)

// announce says once that the replica takes ticks. If Redis has not answered before, or has not taken the replica's first
// registration, announce says once that the replica waits for Redis.
func (s *redisStatus) announce() {
	switch ready := s.answeredOnce.Load() && !s.timers.bornAt().IsZero(); {
	case ready && s.announced != taking:
		s.announced = taking
	case !ready && s.announced == "":
		s.announced = waiting
	default:
		return
	}
	s.log.Info(s.announced, s.about()...)
}
