package sidecar

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// redisStatus follows how the replica gets on with Redis, for the log, the metrics, the readiness and the page. The
// looker alone uses it, except for answeredOnce and shown.
type redisStatus struct {
	store       *service.Store
	log         *slog.Logger
	metrics     *metrics
	timerLedger *job         // stands for all timers: the first that is registered
	about       func() []any // attributes of the replica for the log
	table       func() *config.Table

	redis string // where Redis is; "" = that is not told

	up           bool
	at           time.Time                    // when the trouble was last logged
	answeredOnce atomic.Bool                  // others ask for it
	shown        atomic.Pointer[view.Trouble] // likewise; nil = Redis is of use
	announced    string                       // the last text that announce has logged
}

// answered logs when Redis is of no use to a look or a heartbeat, and when it is again. True if Redis has come, or come
// back.
func (s *redisStatus) answered(err error) (came bool) {
	came = err == nil && (!s.up || !s.answeredOnce.Load())
	switch {
	case err == nil && !s.up:
		s.log.Info("Redis answers")
		s.shown.Store(nil)
	case err != nil:
		s.report(diagnosis.Of(err))
	}
	s.up = err == nil
	show(s.metrics.redisUp, s.up)
	return came
}

// registered logs when Redis answers but does not take the jobs, and when it takes them again. Such a Redis is a
// replica, or its user may not write.
func (s *redisStatus) registered(ctx context.Context, refused string, err error) {
	switch {
	case err != nil:
		s.report(diagnosis.Of(err), "job", refused)
	case ctx.Err() == nil && s.up && s.shown.Load() != nil:
		s.log.Info("Redis takes the jobs")
		s.shown.Store(nil)
	}
}

// report tells the page and the log what is wrong. The log hears of a new trouble at once, and of the same one once a
// minute. with has further attributes for it.
func (s *redisStatus) report(d diagnosis.Diagnosis, with ...any) {
	since, ok := s.store.Now()
	if !ok {
		since = time.Now()
	}
	before := s.shown.Load()
	if before != nil {
		since = before.Since
	}
	s.shown.Store(&view.Trouble{Since: since, Diagnosis: d})
	if before != nil && before.Says == d.Says && time.Since(s.at) < reportAgain {
		return
	}
	s.at = time.Now()
	if s.redis != "" {
		with = append(with, "redis", s.redis)
	}
	with = append(with, "err", d.Reason)
	if d.Hint != "" {
		with = append(with, "hint", d.Hint)
	}
	s.log.Error("Redis "+d.Says, with...)
}

// reportAgain is how often the log repeats the same trouble, so that a reader need not look far back for it.
const reportAgain = time.Minute

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
	show(s.metrics.redisFit, len(problems) == 0)
}

// announce logs one of these when the replica has started.
const (
	taking  = "taking ticks"
	waiting = "waiting for Redis"
)

// announce logs once that the replica takes ticks, which it does only with a table. Before that, it logs once that the
// replica waits for Redis, if Redis has not answered or has not taken the first registration.
func (s *redisStatus) announce() {
	switch answered := s.answeredOnce.Load() && !s.timerLedger.bornAt().IsZero(); {
	case answered && s.announced != taking && s.table().MaxRunning >= 0:
		s.announced = taking
	case !answered && s.announced == "":
		s.announced = waiting
	default:
		return
	}
	s.log.Info(s.announced, s.about()...)
}
