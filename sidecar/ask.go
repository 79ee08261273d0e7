package sidecar

import (
	"context"
	"fmt"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// An app may ask so long before a tick, and is answered after so long at most. So its clock may be fast, and Redis may
// be away for a while.
const (
	earliestAsk = 30 * time.Second
	longestAsk  = time.Minute
)

// Ask claims a tick for an app whose own scheduler runs the job; a zero tick is the one next to now. It returns when
// the tick has come, with what the app needs for its run, on which it reports to runs. The error is a *service.Refusal
// if the app must not have asked, and a *view.NotGranted if the tick is not for it.
func (s *Sidecar) Ask(ctx context.Context, job string, tick time.Time, runs callback.Executor) (view.Granted, error) {
	ctx, cancel := context.WithTimeout(ctx, longestAsk)
	defer cancel()
	for {
		a := &asker{runs: runs, waits: ctx, granted: make(chan view.Granted), refused: make(chan skip, 1)}
		if err := s.awaitLease(ctx, job); err != nil {
			return view.Granted{}, err
		}
		if err := s.ask(a, job, tick); err != nil {
			return view.Granted{}, err
		}
		select {
		case g := <-a.granted:
			return g, nil
		case why := <-a.refused:
			faster := why.reason == overlap || why.reason == firedElsewhere || why.reason == superseded // another was
			if !faster || !s.isLease(job) {
				return view.Granted{}, why.toAsker()
			}
			if !beat.Sleep(ctx, lookEvery/4) {
				return view.Granted{}, skip{reason: overlap, holder: why.holder}.toAsker()
			}
		case <-ctx.Done():
			if s.slots.idle() != "" {
				return view.Granted{}, skip{reason: notReady}.toAsker()
			}
			return view.Granted{}, skip{reason: unasked}.toAsker()
		}
	}
}

// isLease reports whether a job is a lease.
func (s *Sidecar) isLease(job string) bool {
	sp := s.spec(job)
	return sp != nil && sp.Schedule.IsLease()
}

// awaitLease waits while an app holds the lease of that name. It does not wait for another job.
func (s *Sidecar) awaitLease(ctx context.Context, job string) error {
	var why skip
	for s.isLease(job) && s.accepting.Err() == nil {
		states, err := s.store.States(s.accepting, []string{job}) // ctx may end before Redis has failed to answer
		switch running := states[job].Running; {
		case err == nil && len(running) == 0:
			return nil
		case err == nil:
			why = skip{reason: overlap, holder: running[0].Replica}
		default:
			why = skip{reason: redisError}
		}
		if !beat.Sleep(ctx, lookEvery) {
			return why.toAsker()
		}
	}
	return nil
}

// ask launches a wake for an app that asks for a tick.
func (s *Sidecar) ask(a *asker, name string, tick time.Time) error {
	s.swapping.Lock() // no fire begins once the last one may have ended: see stopTimers
	defer s.swapping.Unlock()
	j := s.job(name)
	sp := j.inForce()
	switch {
	case sp == nil && s.slots.idle() == NoTable:
		return skip{reason: notReady}.toAsker()
	case sp == nil:
		return &service.Refusal{Kind: service.NoJob}
	case sp.Claim == nil:
		return &service.Refusal{Kind: service.OtherWay, Hint: "give the job claim: {} in place of http or exec",
			Message: fmt.Sprintf("the replicas run job %q by themselves: no app can ask for its ticks", name)}
	case s.accepting.Err() != nil || !s.cron.started():
		return skip{reason: draining}.toAsker()
	case sp.observed:
		return &view.NotGranted{Reason: string(observed)}
	}
	now := sp.now(s.clock)
	if sp.Schedule.IsLease() {
		a.idle = s.slots.idle
		s.launchFor(a, j, now.Truncate(time.Millisecond), now)
		return nil
	}
	before, after := sp.series.newest(now), sp.series.after(now)
	if tick.IsZero() {
		tick = after
		if after.IsZero() || !before.IsZero() && now.Sub(sp.series.due(before)) < sp.series.due(after).Sub(now) {
			tick = before
		}
	}
	due := sp.series.due(tick)
	switch _, excluded := sp.Schedule.Excluded(tick); {
	case excluded, tick.Before(sp.Start), !sp.End.IsZero() && !tick.Before(sp.End):
		return skip{reason: outsideWindow}.toAsker()
	case !sp.Schedule.Next(tick.Add(-time.Nanosecond)).Equal(tick):
		last, next := sp.Schedule.Last(tick), sp.Schedule.Next(tick)
		return &service.Refusal{Kind: service.Invalid,
			Message: fmt.Sprintf("%s is no tick of job %q", stamp(tick), name),
			Hint:    fmt.Sprintf("the ticks next to it are %s and %s", stamp(last), stamp(next))}
	case due.Sub(now) > earliestAsk:
		return &service.Refusal{Kind: service.Future, Hint: "ask when it has come",
			Message: fmt.Sprintf("%s comes in %s", stamp(tick), due.Sub(now).Round(time.Second))}
	}
	s.launchFor(a, j, tick, now)
	return nil
}

// launchFor fires a tick for an app that asks.
func (s *Sidecar) launchFor(a *asker, j *job, tick, now time.Time) {
	j.mu.Lock()
	w := j.tableWake(tick, now)
	j.mu.Unlock()
	w.asker = a
	s.firer.launch(&w, func(why skip) { a.refused <- why })
}

// toAsker tells an app that asked why it must not run the tick.
func (s skip) toAsker() *view.NotGranted {
	n := &view.NotGranted{Reason: string(s.reason)}
	switch s.reason {
	case firedElsewhere, overlap:
		n.By = s.holder
	case draining, redisError, notReady, noSlot, startFailed, unasked:
		n.Unknown = true
	}
	return n
}
