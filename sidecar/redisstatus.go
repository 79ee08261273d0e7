package sidecar

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/sidecar/service"
)

// redisStatus follows how the replica gets on with Redis, for the log, the metrics and the readiness. The looker
// alone uses it, except for answeredOnce.
type redisStatus struct {
	store   *service.Store
	log     *slog.Logger
	metrics *metrics
	timers  *job         // stands for all timers: the first that is registered
	about   func() []any // attributes of the replica for the log

	trouble      trouble
	up           bool
	answeredOnce atomic.Bool // others ask for it
	announced    string      // the last text that announce has logged
}

// answered logs when Redis is of no use, and when it is again. True if Redis has come, or come back.
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

// registered logs when Redis answers but does not take the jobs, and when it takes them again. Such a Redis is a
// replica, or its user may not write.
func (s *redisStatus) registered(ctx context.Context, refused string, err error) {
	switch {
	case err != nil:
		s.trouble.report(s.log, diagnosis.Of(err), "job", refused)
	case ctx.Err() == nil && s.trouble.says != "":
		s.log.Info("Redis takes the jobs")
		s.trouble.clear()
	}
}

// checkFitness logs what is wrong with a Redis that has come: it may be another one than before.
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

// announce logs one of these when the replica has started.
const (
	taking  = "taking ticks"
	waiting = "waiting for Redis"
)

// announce logs once that the replica takes ticks. Before that, it logs once that the replica waits for Redis, if
// Redis has not answered or has not taken the first registration.
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
