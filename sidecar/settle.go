package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// settler tells Redis how runs ended. It is immutable.
type settler struct {
	*life
	store      *service.Store
	replica    string
	clock      *clock
	log        *slog.Logger
	rendezvous *rendezvous
	nudges     *nudges
	record     *recorder
}

// mostWait bounds how long a tick waits before another round of attempts to start it.
const mostWait = time.Minute

// handover gives the tick to a replica that has not refused it in this round. If all have refused it, the next round
// begins, after a wait that grows from round to round, and any replica may take the tick.
//
// It returns false if a handover is of no use: the job's rounds are used up, a newer tick is due by the time of the
// next round, or other replicas would fail too. Then the tick has failed.
//
// If Redis gives no answer, handover asks once more, and then leaves the run to a takeover. It does not give the tick
// up: that would be another question, and might be the one that arrives.
func (s *settler) handover(w *wake, h *held, end *ended) bool {
	if end.result.Status == execute.Failed {
		return false
	}
	ctx, cancel := s.afterwards(w)
	defer cancel()
	all := s.rendezvous.allRefused(ctx, append(slices.Clone(w.of.Refused), s.replica))
	if all && w.of.Rounds >= w.spec.StartRetries {
		return false
	}
	// A replica that has not refused the tick, and does not take it, is full or unable.
	everybody := all || len(w.of.Refused) > 0 && w.of.Age >= patience
	next, wait := h.Handover, time.Duration(0)
	if everybody {
		next, wait = h.NextRound, min(time.Second<<min(w.of.Rounds, 6), mostWait)
	}
	if w.expiresWithin(wait, s.clock) {
		return false
	}
	handed := *end
	handed.outcome = handedOver
	hand := func() error {
		ctx, cancel := s.afterwards(w)
		defer cancel()
		// If Redis does not know the run any more, the same request has handed it over already.
		_, err := next(ctx, wait, s.record.entry(w, h, &handed).Ending())
		return err
	}
	err := hand()
	if err != nil && s.accepting.Err() == nil {
		err = hand()
	}
	if err != nil {
		s.unrecorded(w, h, err)
	} else {
		s.record.metrics.tally(w.spec.label).handovers.Add(1)
	}
	return true
}

// settle tells Redis that the run is over: ended, never begun, or cut short, in which case it may run again. If Redis
// stays away, a takeover will find the run without a lease. The result is zero if Redis gave no answer. If it is Late,
// another replica has taken the run for dead, and has counted it as interrupted.
func (s *settler) settle(w *wake, h *held, end *ended) lock.Settled {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	if end.outcome == notStarted && w.attempt > 1 { // an earlier run of the tick was started
		end.outcome = wasInterrupted
	}
	entry := s.record.entry(w, h, end)
	var settled lock.Settled
	var err error
	switch {
	case end.start.IsZero():
		settled, err = h.GiveUp(ctx, entry.Ending())
	case end.cutShort() && w.spec.Guarantee == config.AtLeastOnce:
		requeue := h.Requeue
		if end.outcome == wasInterrupted && !errors.Is(end.result.Err, callback.ErrUnsure) { // it is the app's fault
			requeue = h.Interrupt
		}
		settled, err = requeue(ctx, entry.Ending())
	default:
		settled, err = h.Finish(ctx, w.spec.safetyDelay(), entry.Ending())
	}
	if w.member != "" && !service.IsTimer(w.of.Job) {
		s.nudges.nudge() // there may be more for this job
	}
	s.nudges.runEnded(w.spec.Name)
	switch {
	case err != nil:
		s.unrecorded(w, h, err)
	case settled.Cancelled: // before the replica had heard of it
		end.outcome = cancelled
	case settled.Verdict == lock.Late: // of lock.None, its last answer may just be lost
		s.log.LogAttrs(ctx, slog.LevelWarn, "the run was taken for dead before it ended",
			append(w.attrs(), slog.String("run", h.run))...)
	}
	return settled
}

func (s *settler) unrecorded(w *wake, h *held, err error) {
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "the end of the run is not recorded in Redis",
		append(w.attrs(), slog.String("run", h.run), slog.String("err", err.Error()))...)
}

// afterwards is a context for the work that remains when the run is over, however it ended. It lasts as long as the
// lease would. While the replica drains, it lasts little longer than the grace.
func (s *settler) afterwards(w *wake) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), w.spec.Lock.TTL)
	stop := context.AfterFunc(s.working, func() {
		if beat.Sleep(ctx, 3*lock.Margin) {
			cancel()
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
